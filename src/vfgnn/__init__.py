"""Graph neural networks across organisations that may not pool their data.

The Python API is loaded when it is used, so that `import vfgnn` costs nothing.
"""

from typing import TYPE_CHECKING

from vfgnn.version import __version__

if TYPE_CHECKING:
    from vfgnn.config import Federation, Settings
    from vfgnn.run.scenario import SimulationResult
    from vfgnn.run.simulate import simulate

__all__ = ["Federation", "Settings", "SimulationResult", "__version__", "simulate"]

_HOME = {
    "Federation": "vfgnn.config",
    "Settings": "vfgnn.config",
    "SimulationResult": "vfgnn.run.scenario",
    "simulate": "vfgnn.run.simulate",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'vfgnn' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
