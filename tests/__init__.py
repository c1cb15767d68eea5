"""What must be said before anything imports torch."""

import os

# Threads that share a product wait for each other without sleeping: where there are more of them than cores, some tests
# took six times the processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
