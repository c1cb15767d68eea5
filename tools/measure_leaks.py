"""What a curious party can infer from the messages that it receives, measured (docs/threat_model.md).

    python tools/measure_leaks.py --dataset cora --json src/vfgnn/report/leaks.json

Two holders train in one process with the preset `best`; A has the labels. Each attack is given what its party holds or
receives in a run, and no more; what it found is then compared with the truth, which only this process has. The joint
layer runs without masks, for speed: the sum of the shares of h0 is the same, word by word, and of the joint layer's
messages the attacks use only that sum.
The report quotes src/vfgnn/report/leaks.json.
Data is found as by `vfgnn simulate`: VFGNN_DATA, the cache, the copy of CiteSeer inside the package.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from scipy.stats import mannwhitneyu
from torch import Generator, Tensor

from vfgnn.agreement import SERVER
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.scenario import Scenario
from vfgnn.lab.simulate import IN_ONE_PROCESS, build
from vfgnn.messages import Declared, Kind
from vfgnn.mpc.fixed_point import FEATURE_BITS
from vfgnn.settings import Preset, Settings
from vfgnn.split.joint_layer import H0
from vfgnn.split.program import H0_SHARE, HIDDEN_GRADIENT, LOCAL_EMBEDDINGS, LOCAL_GRADIENT
from vfgnn.transport.memory import InMemoryNetwork

REVEALS = 3  # of h0, for the Gram matrix
DRAWS = 100  # of the known labels: one lucky choice says little
GRAM_NODES = 4000  # bounds the memory of the Gram matrices to 128 MB each

Messages = dict[tuple[Kind, str, str], list[Tensor]]
"""By kind, sender and receiver."""


class ListeningNetwork(InMemoryNetwork):
    """Keeps the first REVEALS messages of each kind and link, and the last (all would be GBs)."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: Messages = defaultdict(list)

    def put(self, message: Declared, payload: Tensor) -> None:
        """As in memory."""
        link = self.kept[message.kind, message.sender, message.receiver]
        del link[REVEALS:]
        link.append(payload.detach().clone())
        super().put(message, payload)


def train(holdings: Sequence[Holding], labels: Labels, settings: Settings, seed: int) -> Messages:
    """Run a federation and listen to all its links."""
    network = ListeningNetwork()
    federation = build(holdings, labels, settings, seed=seed, network=network)
    federation.train()
    return network.kept


def reveals_of_h0(messages: Messages) -> list[Tensor]:
    """H0 after the first updates, as both holders see it: the sum of their shares, decoded."""
    shares = messages[H0_SHARE, "A", "B"], messages[H0_SHARE, "B", "A"]
    first, *moved = [H0.decode(a + b) for a, b in zip(*shares, strict=True)][:REVEALS]
    return [first, *(first - product for product in moved)]  # h0 = H_0 - X P: the preset has no joint weight decay


def edge_auc(rows: Tensor, holding: Holding, rng: Generator) -> float:
    """Server, from the rows [nodes, d] that a holder publishes for the predictions: that holder's edges.

    Pairs of nodes are ranked by the cosine of their rows. Gets the probability that an edge stands above a random pair
    that is none (AUC; 0.5 is guessing).
    """
    edges = torch.unique(holding.edge_index[:, holding.edge_index[0] < holding.edge_index[1]], dim=1)
    pairs = torch.randint(holding.nodes, (2, 3 * edges.shape[1]), generator=rng).sort(dim=0).values
    numbered = [one[0] * holding.nodes + one[1] for one in (pairs, edges)]
    others = pairs[:, (pairs[0] < pairs[1]) & ~torch.isin(*numbered)][:, : edges.shape[1]]
    unit = F.normalize(rows.double(), dim=1)
    scores = [(unit[one[0]] * unit[one[1]]).sum(dim=1).numpy() for one in (edges, others)]
    return float(mannwhitneyu(*scores).statistic / (edges.shape[1] * others.shape[1]))


def labels_found(gradient: Tensor, y: Tensor, classes: int, rng: Generator) -> float:
    """Server, from dL/dz_L of step 0; holder B, from the gradient of its own rows of step 0; one known label per class.

    Every other training row gets the class of the known row whose gradient has the largest cosine with its own. Gets
    the share of these labels that are right, the mean over DRAWS random choices of the known ones. Step 0 is fixed
    beforehand: an attacker cannot see which step would serve it best.
    """
    unit = F.normalize(gradient.double(), dim=1)
    cosine = unit @ unit.t()  # [training rows, training rows]
    shares = []
    for _ in range(DRAWS):
        order = torch.randperm(len(y), generator=rng)
        known = torch.stack([order[y[order] == label][0] for label in range(classes)])
        others = torch.ones(len(y), dtype=torch.bool).index_fill(0, known, value=False)
        right = cosine[:, known].argmax(dim=1) == y
        shares.append(float(right[others].double().mean()))
    return sum(shares) / DRAWS


def gram_correlations(h0: Tensor, x_own: Tensor, x_other: Tensor, rng: Generator) -> list[float]:
    """Holder A, from the first reveals of h0 side by side [nodes, REVEALS d] and its own features: X_B X_B^T.

    A random W nearly keeps the angles between rows. First way: take what A's columns explain out of h0 (least squares),
    then form the Gram matrix. Second way: form it at once, then take out the multiple of X_A X_A^T that fits best: A's
    columns also explain much of X_B, which is not lost this way. Gets, for each way, the correlation of the entries off
    the diagonal with the true ones.
    """
    residual = h0 - x_own @ torch.linalg.lstsq(x_own, h0, driver="gelsd").solution  # gelsd: X_A may lack full rank
    chosen = torch.randperm(len(h0), generator=rng)[:GRAM_NODES]
    above = torch.ones(len(chosen), len(chosen), dtype=torch.bool).triu(1)
    grams = [(one[chosen] @ one[chosen].t())[above] for one in (residual, h0, x_own, x_other)]
    from_residual, together, own, truth = (gram - gram.mean() for gram in grams)
    apart = together - own * (own @ together) / (own @ own)
    return [F.cosine_similarity(guess, truth, dim=0).item() for guess in (from_residual, apart)]


def few_columns_error(seed: int) -> float:
    """Holder A, from one reveal of h0 (d = 64) and 40 rows of B, when both have 20 real columns: B's other rows.

    The known rows give W by least squares, and W the rest of X_B. Gets the largest error relative to the largest |x|.
    The values lie on the grid of the ring's encoding, so that this is the attack's error and not that of rounding.
    """
    nodes, columns, known, rng = 400, 20, 40, Generator().manual_seed(seed)
    x = torch.randn(nodes, 2 * columns, generator=rng, dtype=torch.float64).mul(2**FEATURE_BITS).round()
    x_a, x_b = torch.split(x.div(2**FEATURE_BITS), columns, dim=1)
    edges = torch.randint(nodes, (2, 2 * nodes), generator=rng)
    rows = torch.arange(nodes)
    labels = Labels(y=rows % 2, train=rows[:200], val=rows[200:300], test=rows[300:], classes=2)
    settings = Preset("best").settings(overrides={**IN_ONE_PROCESS, "dim": 64, "epochs": 1})
    h0 = reveals_of_h0(train([Holding(x_a, edges), Holding(x_b, edges)], labels, settings, seed))[0]
    w_a, w_b = torch.split(torch.linalg.lstsq(torch.cat([x_a, x_b], dim=1)[:known], h0[:known]).solution, columns)
    found = (h0 - x_a @ w_a) @ torch.linalg.pinv(w_b)
    return float((found - x_b)[known:].abs().max() / x_b.abs().max())


@dataclass(frozen=True)
class Leak:
    """What one attack got."""

    name: str  # by which the report quotes it
    who: str
    source: str
    gets: str
    measure: str
    value: float


def measure(dataset: str, seed: int) -> list[Leak]:
    """All attacks, each on its own messages of one run."""
    scenario = Scenario.of(dataset, holders=2, preset="best", seed=seed, **IN_ONE_PROCESS)  # type: ignore[arg-type]
    labels, (a, b) = scenario.labels, scenario.holdings
    messages = train(scenario.holdings, labels, scenario.settings, seed)
    rng = Generator().manual_seed(seed)
    published = [messages[LOCAL_EMBEDDINGS, name, SERVER][-1] for name in ("A", "B")]
    edges_a, edges_b = (edge_auc(rows, holding, rng) for rows, holding in zip(published, (a, b), strict=True))
    gradients = messages[HIDDEN_GRADIENT, "A", SERVER][0], messages[LOCAL_GRADIENT, SERVER, "B"][0]
    to_server, to_b = (labels_found(one, labels.y[labels.train], labels.classes, rng) for one in gradients)
    h0 = torch.cat(reveals_of_h0(messages), dim=1)
    without_columns, without_gram = gram_correlations(h0, a.x.double(), b.x.double(), rng)
    few_columns = few_columns_error(seed)
    found = [
        ("edges of B", "server", "published rows of B", "edges of B", "AUC", edges_b),
        ("edges of A", "server", "published rows of A", "edges of A", "AUC", edges_a),
        (
            "labels, server",
            "server",
            "dL/dz_L of step 0, one label a class",
            "training labels",
            "share",
            to_server,
        ),
        ("labels, holder", "B", "its gradient of step 0, one label a class", "training labels", "share", to_b),
        (
            "Gram, columns",
            "A",
            f"{REVEALS} reveals of h0 less own columns",
            "X_B X_B^T",
            "correlation",
            without_columns,
        ),
        ("Gram", "A", f"{REVEALS} reveals of h0 less own Gram matrix", "X_B X_B^T", "correlation", without_gram),
        ("few columns", "A", "1 reveal, 20 + 20 columns, 40 known rows", "all rows of B", "largest error", few_columns),
    ]
    return [Leak(*row) for row in found]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="What a curious party can infer from the messages that it receives.")
    parser.add_argument("--dataset", default="cora", help="cora, citeseer or pubmed")
    parser.add_argument("--seed", type=int, default=0, help="of the partition and of all randomness")
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    found = measure(args.dataset, args.seed)
    table = Table("who", "from what", "gets", "measured", title=f"{args.dataset}, two holders, preset best")
    for row in found:
        table.add_row(row.who, row.source, row.gets, f"{row.measure} {row.value:#.3g}")
    Console().print(table)
    if args.json is not None:
        record = {
            "command": f"python tools/measure_leaks.py --dataset {args.dataset} --seed {args.seed}",
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "leaks": {leak.name: asdict(leak) for leak in found},
        }
        args.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
