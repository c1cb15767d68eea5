"""What each mitigation that the program has does to attacks and to accuracy: one test federation for each.

Values beside an epsilon are those of `vfgnn reproduce privacy`: the more false edges, the fewer hops. They were chosen
on validation nodes (experiments/privacy.py).
"""

from collections.abc import Mapping
from dataclasses import replace

from vfgnn.audit.case import Case
from vfgnn.audit.simulated_run import Simulation

MITIGATIONS: dict[str, Mapping[str, object]] = {
    "none": {},
    "joint_layer_epochs = 0": {"joint_layer_epochs": 0},
    "initial_embedding = individual": {"initial_embedding": "individual"},
    "edge_epsilon = 8": {"privacy": {"edge_epsilon": 8.0}, "layers": 6, "teleport": 0.1},
    "edge_epsilon = 4": {"privacy": {"edge_epsilon": 4.0}, "layers": 2, "teleport": 0.5},
    "label_epsilon = 4": {"privacy": {"label_epsilon": 4.0}},
    "label_epsilon = 1": {"privacy": {"label_epsilon": 1.0}},
    "combine = mean": {"combine": "mean"},
    "combine = mean, row_epsilon = 16": {"combine": "mean", "privacy": {"row_epsilon": 16.0}},
    "gradient_epsilon = 16": {"privacy": {"gradient_epsilon": 16.0}},
    "hidden_layers = 1": {"hidden_layers": 1},
    "publish = all": {"publish": "all"},
    "protocol = sealed": {"protocol": "sealed"},
}
"""The preset `best` publishes what is needed already, so `publish = all` shows what that is good for."""


def mitigation_cases(simulation: Simulation, dataset: str) -> list[Case]:
    """One for each, on the same parts of the same graph."""
    return [replace(simulation.case(dataset, changes), title=name) for name, changes in MITIGATIONS.items()]
