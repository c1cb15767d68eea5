"""The baseline SecureGNN with all its parties in this process."""

from collections.abc import Callable, Sequence

from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.scenario import agreement_of
from vfgnn.lab.simulate import assemble
from vfgnn.records import EpochMetrics, Outcome
from vfgnn.secure_gnn.program import serverless, training
from vfgnn.settings import Settings
from vfgnn.transport.memory import InMemoryNetwork

OnEpoch = Callable[[EpochMetrics], None]


def train_secure_gnn(
    holdings: Sequence[Holding],
    labels: Labels,
    settings: Settings,
    *,
    seed: int,
    layer_rate: float = 0.3,
    on_epoch: OnEpoch | None = None,
    network: InMemoryNetwork | None = None,
) -> Outcome:
    """All parties in this process; `seed` is public here, so nothing is secret."""
    agreement = serverless(agreement_of(holdings, labels, settings), layer_rate=layer_rate)
    parties = assemble(
        agreement,
        holdings,
        labels,
        training(agreement),
        seed=seed,
        protocol="secure_gnn",
        on_epoch=on_epoch,
        network=network,
    )
    return parties.train()
