"""Graph neural networks across organisations that may not pool their data.

The Python API (docs/python.md) is loaded when it is used, so that `import vfgnn` costs nothing.
"""

from typing import TYPE_CHECKING

from vfgnn.version import __version__

if TYPE_CHECKING:
    from vfgnn.lab.federation import Federation
    from vfgnn.lab.local_training import TrainingResult, predict, train
    from vfgnn.lab.scenario import SimulationResult
    from vfgnn.lab.simulate import simulate
    from vfgnn.lab.tables import Tables
    from vfgnn.privacy.mechanisms import Cost
    from vfgnn.privacy.own_mechanism import RowMechanism
    from vfgnn.settings import Settings

__all__ = [
    "Cost",
    "Federation",
    "RowMechanism",
    "Settings",
    "SimulationResult",
    "Tables",
    "TrainingResult",
    "__version__",
    "predict",
    "simulate",
    "train",
]

_HOME = {
    "Cost": "vfgnn.privacy.mechanisms",
    "Federation": "vfgnn.lab.federation",
    "RowMechanism": "vfgnn.privacy.own_mechanism",
    "Settings": "vfgnn.settings",
    "SimulationResult": "vfgnn.lab.scenario",
    "Tables": "vfgnn.lab.tables",
    "TrainingResult": "vfgnn.lab.local_training",
    "predict": "vfgnn.lab.local_training",
    "simulate": "vfgnn.lab.simulate",
    "train": "vfgnn.lab.local_training",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'vfgnn' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
