"""What a user's own module must keep to, so that it can take part and cannot break the protocol.

Code comes from a party's own file (or, in a simulation, from the caller), never from the public one. It is tried on
made-up rows before anything is sent; nothing leaves.
"""

import torch
from torch import nn

from vfgnn.errors import ModuleError

ROWS = 4  # of the made-up input
TOLERANCE = 1e-4  # relative; float32 sums of up to a thousand terms in another order differ by less than 1000 * 2^-24


def check_module(module: nn.Module) -> nn.Module:
    """Refuse a module whose rows would differ between training and evaluation.

    One published row serves both, and under differential privacy it is paid for once; the server computes a row again
    for its gradient. Dropout is the federation's own, at the server.
    """
    if not isinstance(module, nn.Module):
        raise ModuleError("no module", expected="a torch.nn.Module", got=type(module).__name__)
    for name, part in module.named_modules():
        rate = part.p if isinstance(part, nn.modules.dropout._DropoutNd) else getattr(part, "dropout", 0.0)
        if isinstance(part, nn.modules.batchnorm._BatchNorm) or (isinstance(rate, float) and rate > 0):
            raise ModuleError(
                "a module of one's own must give the same rows in training and in evaluation",
                expected="no dropout and no batch normalisation",
                got=f"{type(part).__name__} at '{name or 'the module itself'}'",
                hint="use the federation's `dropout`, which acts at the server, and LayerNorm instead of BatchNorm",
            )
    return module


def combined(module: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """What a user's combine makes of rows [holders, rows, d]; anything but [rows, d] would not fit the schedule."""
    out = module(rows)
    if not isinstance(out, torch.Tensor) or out.shape != rows.shape[1:] or out.dtype != rows.dtype:
        wanted = f"a tensor {list(rows.shape[1:])} of {rows.dtype}"
        got = f"{list(out.shape)} of {out.dtype}" if isinstance(out, torch.Tensor) else type(out).__name__
        raise ModuleError("a combine must give one row of width d for each node", expected=wanted, got=got)
    return out


def check_combine(module: nn.Module, *, holders: int, dim: int, dtype: torch.dtype) -> nn.Module:
    """Refuse a combine that would leave the holders without a gradient, or give a row that depends on other rows.

    The server combines the rows that a step needs, then once more those with a gradient: a row must be the same in
    whatever company it is computed.
    """
    check_module(module).to(dtype)
    draw = torch.Generator().manual_seed(0)
    rows = torch.rand(holders, ROWS, dim, generator=draw, dtype=dtype).requires_grad_()
    out = combined(module, rows)
    if not torch.equal(out, combined(module, rows)):
        raise ModuleError("a combine must give the same rows each time", got="others when asked again")
    some, few = combined(module, rows[:, [2, 0]]), out[[2, 0]]
    if not torch.allclose(some, few, rtol=TOLERANCE, atol=TOLERANCE):
        raise ModuleError("a combine must treat each node by itself", got="rows that depend on the rows of other nodes")
    combined(module, rows[:, :0])  # a step may have no row with a gradient
    reached = torch.autograd.grad(out.sum(), rows, allow_unused=True)[0] if out.requires_grad else None
    if reached is None:
        raise ModuleError("a combine must pass the gradient on", expected="rows that are not detached")
    return module
