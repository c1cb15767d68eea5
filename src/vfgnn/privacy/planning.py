"""What a privacy budget asks for, before a run: public numbers in, public numbers out."""

from dataclasses import asdict, dataclass
from typing import cast

from vfgnn.errors import ConfigError
from vfgnn.privacy import input_perturbation
from vfgnn.privacy.calibration import (
    Adjacency,
    Calibration,
    check_delta,
    check_epsilon,
    epsilon_of,
    noise_multiplier,
)
from vfgnn.privacy.mechanisms import GaussianMechanism

LEARNABLE = 0.4
"""Norm of a row over the norm of its noise, below which training on Cora loses more than five points
(docs/privacy.md, `vfgnn reproduce privacy`)."""


@dataclass(frozen=True)
class Mode:
    """One way to spend a budget, and whether it can be met."""

    name: str
    unit: str
    epsilon_total: float
    meets: bool
    means: str


@dataclass(frozen=True)
class Budget:
    """What `vfgnn privacy plan` prints and writes."""

    epsilon: float
    total: bool
    delta: float
    releases: int
    calibration: str
    adjacency: str
    dim: int
    noise_multiplier: float
    epsilon_per_release: float
    epsilon_total: float
    signal_to_noise_per_row: float
    modes: tuple[Mode, ...]

    def to_json(self) -> dict[str, object]:
        """As it is."""
        return asdict(self)


def plan_budget(
    epsilon: float,
    delta: float,
    releases: int,
    *,
    total: bool = False,
    calibration: str = "analytic",
    adjacency: str = "zero_out",
    dim: int = 64,
    nodes: int | None = None,
    edges: int | None = None,
    classes: int = 7,
) -> Budget:
    """Noise and totals of `releases` Gaussian releases, beside input perturbation at the same number."""
    check_epsilon(epsilon)
    check_delta(delta, nodes)
    if calibration not in ("analytic", "classical") or adjacency not in ("zero_out", "replace_one"):
        raise ConfigError(
            "unknown calibration or adjacency",
            expected="analytic or classical; zero_out or replace_one",
            got=f"{calibration}; {adjacency}",
        )
    if releases < 1:
        raise ConfigError("releases cannot be used", expected="a whole number from 1 on", got=str(releases))
    multiplier = noise_multiplier(epsilon, delta, cast(Calibration, calibration), releases=releases if total else 1)
    mechanism = GaussianMechanism(1.0, multiplier, cast(Adjacency, adjacency))
    spent = epsilon_of(multiplier, delta, releases)
    signal = mechanism.signal_to_noise(dim)
    return Budget(
        epsilon=epsilon,
        total=total,
        delta=delta,
        releases=releases,
        calibration=calibration,
        adjacency=adjacency,
        dim=dim,
        noise_multiplier=multiplier,
        epsilon_per_release=epsilon_of(multiplier, delta),
        epsilon_total=spent,
        signal_to_noise_per_row=signal,
        modes=(_rows(epsilon, spent, signal), _edges(epsilon, nodes, edges), _labels(epsilon, classes)),
    )


def _rows(epsilon: float, spent: float, signal: float) -> Mode:
    within, learns = spent <= epsilon * (1 + 1e-6), signal >= LEARNABLE
    means = f"a row is {signal:.3f} times its noise: " + (
        "enough to learn from" if learns else "too little to learn from"
    )
    if not within:
        means = f"all releases together cost {spent:.4g}, not {epsilon:g}; {means}"
    return Mode("noise on published rows", "one row of one message", spent, within and learns, means)


def _edges(epsilon: float, nodes: int | None, edges: int | None) -> Mode:
    flip = input_perturbation.flip_probability(epsilon)
    if nodes is None or edges is None:
        means = f"{100 * (1 - flip):.2f} % of the true edges stay, {flip:.2g} of all other pairs join them"
        return Mode(
            "noised edges, once", "one edge of one holder", epsilon, True, f"{means} (--nodes, --edges: how many)"
        )
    kept, real = input_perturbation.edge_meaning(nodes, edges, epsilon)
    means = f"{100 * kept:.2f} % of the true edges stay; a listed edge is real with probability {real:.2f}"
    return Mode("noised edges, once", "one edge of one holder", epsilon, True, means)


def _labels(epsilon: float, classes: int) -> Mode:
    kept = input_perturbation.keep_probability(epsilon, classes)
    means = f"{100 * kept:.1f} % of the labels of {classes} classes stay"
    return Mode("noised labels, once", "one label", epsilon, True, means)
