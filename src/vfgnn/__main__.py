"""`python -m vfgnn` is `vfgnn`."""

from vfgnn.cli.main import main

main()
