"""Readings of the paper's James-Stein estimator beside Gaussian (Q6, docs/deviations.md): one table, as Markdown.

    python tools/james_stein.py --epsilons 4,8,16

Cora, preset `best` with mean, two holders, every row published in every epoch, the paper's noise. Accuracy is that of
validation nodes, partitions 1000 and 1001: nothing here is about test nodes. Each reading is a mechanism of a holder's
own (docs/python.md), so that what is trained is the product.
"""

import argparse
from statistics import mean

import torch

from vfgnn.data import datasets
from vfgnn.data.partition import partition
from vfgnn.experiments.privacy import DATASET, DELTA, noised_rows
from vfgnn.lab.federation import split_labels
from vfgnn.lab.simulate import IN_ONE_PROCESS, build
from vfgnn.party.own_code import OwnCode
from vfgnn.privacy.calibration import classical_multiplier, epsilon_of, noise_multiplier
from vfgnn.privacy.mechanisms import Cost, GaussianMechanism
from vfgnn.privacy.own_mechanism import RowMechanism
from vfgnn.randomness import Stream
from vfgnn.settings import Privacy

SEEDS = (1000, 1001)


class Gaussian(RowMechanism):
    """Noise alone; the others say what becomes of it."""

    def __init__(self, privacy: Privacy, dim: int) -> None:
        super().__init__(privacy, dim)
        multiplier = noise_multiplier(privacy.row_epsilon or 0.0, privacy.delta, "analytic")
        self._gaussian = GaussianMechanism(privacy.clip_norm, multiplier, privacy.adjacency)

    @property
    def cost(self) -> Cost:
        """That of the noise: what follows is post-processing."""
        return self._gaussian.cost

    def noise(self, rows: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Rows as they leave."""
        return self.shrunk(self._gaussian.release(rows, stream), self._gaussian.std**2)

    def shrunk(self, noised: torch.Tensor, variance: float) -> torch.Tensor:
        """Nothing."""
        return noised


class PerRow(Gaussian):
    """As printed: one factor for each row."""

    def shrunk(self, noised: torch.Tensor, variance: float) -> torch.Tensor:
        """d: the row's number of values."""
        return noised * (1 - (noised.shape[1] - 2) * variance / noised.square().sum(1, keepdim=True))


class PositivePart(Gaussian):
    """One factor for each row, never below zero (nor zero: a row of zeros would look like one without noise)."""

    def shrunk(self, noised: torch.Tensor, variance: float) -> torch.Tensor:
        """As printed, and no row is turned round."""
        factor = 1 - (noised.shape[1] - 2) * variance / noised.square().sum(1, keepdim=True)
        return noised * factor.clamp_min(0.001)


class PerMessage(Gaussian):
    """One factor for all that is sent at once."""

    def shrunk(self, noised: torch.Tensor, variance: float) -> torch.Tensor:
        """d: the message's number of values."""
        return noised * (1 - (noised.numel() - 2) * variance / noised.square().sum())


class PerColumn(Gaussian):
    """One factor for each column of a message."""

    def shrunk(self, noised: torch.Tensor, variance: float) -> torch.Tensor:
        """d: the message's number of rows."""
        return noised * (1 - (len(noised) - 2) * variance / noised.square().sum(0, keepdim=True))


class TowardsTheMean(Gaussian):
    """One factor for each row, towards the message's mean row instead of zero."""

    def shrunk(self, noised: torch.Tensor, variance: float) -> torch.Tensor:
        """D - 3: the mean takes one more degree of freedom."""
        centre = noised.mean(0, keepdim=True)
        away = noised - centre
        return centre + away * (1 - (noised.shape[1] - 3) * variance / away.square().sum(1, keepdim=True))


READINGS: dict[str, type[Gaussian]] = {
    "Gaussian": Gaussian,
    "James-Stein as printed, one factor per row": PerRow,
    "its positive part": PositivePart,
    "one factor for a whole message, d its number of values": PerMessage,
    "one factor per column, d the number of rows": PerColumn,
    "towards the mean row instead of 0": TowardsTheMean,
}


def reached(reading: type[Gaussian], epsilon: float, seed: int) -> float:
    """Validation accuracy of one training; the epsilon that its noise really has is what the settings say."""
    exact = epsilon_of(classical_multiplier(epsilon, DELTA), DELTA, 1)
    privacy = {"row_epsilon": exact, "delta": DELTA}
    settings = noised_rows(epsilon, IN_ONE_PROCESS, {}).model_copy(update={"privacy": Privacy.model_validate(privacy)})
    data = datasets.load(DATASET)
    holdings = partition(data.x, data.edge_index, holders=2, seed=seed)
    federation = build(holdings, split_labels(data), settings, seed=seed, code=OwnCode(mechanism=reading))
    return federation.train().val_accuracy


def main() -> None:
    """One line per reading, as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", default="4,8,16")
    epsilons = [float(word) for word in parser.parse_args().epsilons.split(",")]
    torch.set_num_threads(1)
    print("| | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in epsilons) + " |")
    print("|---" + "|---:" * len(epsilons) + "|")
    for name, reading in READINGS.items():
        found = [mean(reached(reading, epsilon, seed) for seed in SEEDS) for epsilon in epsilons]
        print(f"| {name} | " + " | ".join(f"{one:.3f}" for one in found) + " |", flush=True)


if __name__ == "__main__":
    main()
