"""Graph neural networks across organisations that may not pool their data.

The Python API (docs/python.md) is loaded when it is used, so that `import vfgnn` costs nothing.
"""

from typing import TYPE_CHECKING

from vfgnn.version import __version__

if TYPE_CHECKING:
    from vfgnn.config import Settings
    from vfgnn.privacy.mechanisms import Cost
    from vfgnn.privacy.own_mechanism import RowMechanism
    from vfgnn.run.federation import Federation
    from vfgnn.run.scenario import SimulationResult
    from vfgnn.run.simulate import simulate
    from vfgnn.run.train import TrainingResult, predict, train

__all__ = [
    "Cost",
    "Federation",
    "RowMechanism",
    "Settings",
    "SimulationResult",
    "TrainingResult",
    "__version__",
    "predict",
    "simulate",
    "train",
]

_HOME = {
    "Cost": "vfgnn.privacy.mechanisms",
    "Federation": "vfgnn.run.federation",
    "RowMechanism": "vfgnn.privacy.own_mechanism",
    "Settings": "vfgnn.config",
    "SimulationResult": "vfgnn.run.scenario",
    "TrainingResult": "vfgnn.run.train",
    "predict": "vfgnn.run.train",
    "simulate": "vfgnn.run.simulate",
    "train": "vfgnn.run.train",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'vfgnn' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
