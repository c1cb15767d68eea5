"""Where a party computes."""

import torch

from vfgnn.errors import ConfigError


def choose_device(name: str) -> torch.device:
    """`cpu` or `cuda`, if it is there."""
    if name not in ("cpu", "cuda"):
        raise ConfigError("unknown device", expected="cpu or cuda", got=name)
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("no CUDA device here", expected="a CUDA device and a CUDA build of torch", hint="use cpu")
    return torch.device(name)
