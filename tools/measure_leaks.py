"""What a curious party can infer from the messages that it receives, measured (docs/threat_model.md).

    python tools/measure_leaks.py --datasets cora,citeseer --json src/vfgnn/report/leaks.json

Holders train in one process with the preset `best`; A has the labels. Each attack is given a party's view, and no more
(vfgnn/audit); what it found is then compared with the truth, which only this process has. The joint layer runs without
masks, for speed: the sum of the shares of h0 is the same, word by word, and of the joint layer's messages the attacks
use only that sum.
The report quotes src/vfgnn/report/leaks.json.
Data is found as by `vfgnn simulate`: VFGNN_DATA, the cache, the copy of CiteSeer inside the package.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Generator, Tensor

from vfgnn.agreement import SERVER
from vfgnn.audit.attack import AttackFinding
from vfgnn.audit.columns_from_h0 import columns_found
from vfgnn.audit.edges import cosines, drawn_pairs
from vfgnn.audit.labels_from_gradient import clusters_found, gradient_of
from vfgnn.audit.rows_from_hidden import degrees_found, edges_found, rows_found
from vfgnn.audit.simulated_run import train_and_record
from vfgnn.audit.statistics import auc
from vfgnn.audit.views import View
from vfgnn.data.holdings import Holding, Labels
from vfgnn.lab.scenario import Scenario
from vfgnn.lab.simulate import IN_ONE_PROCESS
from vfgnn.mpc.fixed_point import FEATURE_BITS
from vfgnn.settings import Preset
from vfgnn.split.joint_layer import H0
from vfgnn.split.program import H0_SHARE, LOCAL_EMBEDDINGS
from vfgnn.view_file import FIRST

REVEALS = FIRST  # of h0, for the Gram matrix
DRAWS = 100  # of the known labels: one lucky choice says little
GRAM_NODES = 4000  # bounds the memory of the Gram matrices to 128 MB each
FEW_COLUMNS = 20  # of each holder, where d >= p is wanted


def reveals_of_h0(view: View) -> list[Tensor]:
    """H0 after the first updates, as each of two holders sees it: the sum of their shares, decoded."""
    other = next(name for name in view.agreement.holder_names if name != view.party)
    shares = view.sent(H0_SHARE, other), view.received(H0_SHARE, other)
    first, *moved = [H0.decode(a + b) for a, b in zip(*shares, strict=True)][:REVEALS]
    return [first, *(first - product for product in moved)]  # h0 = H_0 - X P: the preset has no joint weight decay


def edge_auc(view: View, about: str, holding: Holding, rng: Generator) -> float:
    """Server, from the rows [nodes, d] that a holder publishes for the predictions: that holder's edges.

    Pairs of nodes are ranked by the cosine of their rows. Gets the probability that an edge stands above a random pair
    that is none (AUC; 0.5 is guessing).
    """
    pairs, truth = drawn_pairs(holding, rng)
    return auc(cosines(view.received(LOCAL_EMBEDDINGS, about)[-1], pairs), truth)


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
    nodes, columns, known, rng = 400, FEW_COLUMNS, 40, Generator().manual_seed(seed)
    x = torch.randn(nodes, 2 * columns, generator=rng, dtype=torch.float64).mul(2**FEATURE_BITS).round()
    x_a, x_b = torch.split(x.div(2**FEATURE_BITS), columns, dim=1)
    edges = torch.randint(nodes, (2, 2 * nodes), generator=rng)
    rows = torch.arange(nodes)
    labels = Labels(y=rows % 2, train=rows[:200], val=rows[200:300], test=rows[300:], classes=2)
    h0 = reveals_of_h0(view_of_one_reveal([Holding(x_a, edges), Holding(x_b, edges)], labels, seed))[0]
    w_a, w_b = torch.split(torch.linalg.lstsq(torch.cat([x_a, x_b], dim=1)[:known], h0[:known]).solution, columns)
    found = (h0 - x_a @ w_a) @ torch.linalg.pinv(w_b)
    return float((found - x_b)[known:].abs().max() / x_b.abs().max())


def view_of_one_reveal(holdings: list[Holding], labels: Labels, seed: int) -> View:
    """Holder A's, of a run with d = 64 in which h0 is revealed once."""
    changed = {**IN_ONE_PROCESS, "dim": 64, "epochs": 1, "joint_layer_epochs": 0}
    return train_and_record(holdings, labels, Preset("best").settings(overrides=changed), seed=seed).views["A"]


def most_frequent_columns(scenario: Scenario, seed: int) -> AttackFinding:
    """Holder A, from one reveal of h0, when both have only their FEW_COLUMNS most frequent words: B's columns."""
    few = []
    for holding in scenario.holdings:
        frequent = holding.x.sum(dim=0).argsort(descending=True)[:FEW_COLUMNS]
        few.append(Holding(holding.x[:, frequent], holding.edge_index))
    view = view_of_one_reveal(few, scenario.labels, seed)
    return columns_found(view, "B", few[1].x, Generator().manual_seed(seed))


@dataclass(frozen=True)
class Leak:
    """What one attack got."""

    name: str  # by which the report quotes it
    who: str
    source: str
    gets: str
    measure: str
    value: float
    statistics: dict[str, object] = field(default_factory=dict)  # of the attacks of vfgnn/audit

    @staticmethod
    def of(name: str, source: str, finding: AttackFinding, **more: float) -> "Leak":
        """A finding of the audit."""
        attack, measured = finding.attack, finding.measured
        gets, statistics = f"{attack.target} ({finding.about})", {**finding.to_json(), **more}
        return Leak(name, finding.party, source, gets, attack.metric, measured.attack.value, statistics)


def measure(dataset: str, seed: int) -> Iterator[Leak]:
    """All attacks, each on its own messages of one run."""
    scenario = Scenario.of(dataset, holders=2, preset="best", seed=seed, **IN_ONE_PROCESS)  # type: ignore[arg-type]
    labels, (a, b) = scenario.labels, scenario.holdings
    views = train_and_record(scenario.holdings, labels, scenario.settings, seed=seed).views
    rng, y = Generator().manual_seed(seed), labels.y[labels.train]
    for name, holding in (("B", b), ("A", a)):
        found = edge_auc(views[SERVER], name, holding, rng)
        yield Leak(f"edges of {name}", SERVER, f"published rows of {name}", f"edges of {name}", "AUC", found)
    for name, party, source in (("server", SERVER, "dL/dz_L of step 0"), ("holder", "B", "its gradient of step 0")):
        found = labels_found(gradient_of(views[party]), y, labels.classes, rng)
        yield Leak(f"labels, {name}", party, f"{source}, one label a class", "training labels", "share", found)
        clustered, rand = clusters_found(views[party], y)
        yield Leak.of(f"label clusters, {name}", f"{source}, no label", clustered, adjusted_rand=rand)
    yield from of_label_holder(scenario, views, "z_L", rng)
    h0 = torch.cat(reveals_of_h0(views["A"]), dim=1)
    ways = zip(("Gram, columns", "Gram"), gram_correlations(h0, a.x.double(), b.x.double(), rng), strict=True)
    for (name, found), less in zip(ways, ("columns", "Gram matrix"), strict=True):
        yield Leak(name, "A", f"{REVEALS} reveals of h0 less own {less}", "X_B X_B^T", "correlation", found)
    yield Leak.of("0/1 columns", "1 reveal, 20 + 20 most frequent columns", most_frequent_columns(scenario, seed))
    found, source = few_columns_error(seed), "1 reveal, 20 + 20 columns, 40 known rows"
    yield Leak("few columns", "A", source, "all rows of B", "largest error", found)
    for name, holders, changes in (("hidden layer", 2, {"hidden_layers": 1}), ("three holders", 3, {})):
        other = Scenario.of(dataset, holders=holders, preset="best", seed=seed, **IN_ONE_PROCESS, **changes)  # type: ignore[arg-type]
        views = train_and_record(other.holdings, other.labels, other.settings, seed=seed).views
        yield from of_label_holder(other, views, f"z_L, {name}", rng)


def of_label_holder(scenario: Scenario, views: dict[str, View], source: str, rng: Generator) -> Iterator[Leak]:
    """What A makes of z_L: B's rows, degrees and edges."""
    view, b = views["A"], scenario.holdings[1]
    rows = views["B"].sent(LOCAL_EMBEDDINGS, SERVER)[-1]
    yield Leak.of(f"rows from {source}", source, rows_found(view, "B", rows))
    if view.agreement.exposed_publishers:  # else the lengths that tell degrees are not there
        degree = torch.bincount(b.edge_index[1], minlength=b.nodes)
        yield Leak.of(f"degrees from {source}", source, degrees_found(view, "B", degree))
    yield Leak.of(f"edges from {source}", source, edges_found(view, "B", b, rng))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="What a curious party can infer from the messages that it receives.")
    parser.add_argument("--datasets", default="cora,citeseer", help="cora, citeseer, pubmed, separated by commas")
    parser.add_argument("--seed", type=int, default=0, help="of the partition and of all randomness")
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    args = parser.parse_args()
    found = {dataset: list(measure(dataset, args.seed)) for dataset in args.datasets.split(",")}
    for dataset, leaks in found.items():
        table = Table("who", "from what", "gets", "measured", "baseline", "verdict", title=f"{dataset}, preset best")
        for leak in leaks:
            table.add_row(leak.who, leak.source, leak.gets, *shown(leak))
        Console().print(table)
    if args.json is not None:
        record = {
            "command": f"python tools/measure_leaks.py --datasets {args.datasets} --seed {args.seed}",
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            "leaks": {dataset: {leak.name: asdict(leak) for leak in leaks} for dataset, leaks in found.items()},
        }
        args.json.write_text(json.dumps(record, indent=2) + "\n")


def shown(leak: Leak) -> tuple[str, str, str]:
    """The figure, its best baseline and the verdict."""
    known = leak.statistics
    baselines = known.get("baselines")
    best = max(one["value"] for one in baselines.values()) if isinstance(baselines, dict) else None
    measure = leak.measure if len(leak.measure) < len("largest error ") else "share"
    figure = f"{measure} {leak.value:#.3g}"
    if "low" in known:
        figure += f" [{known['low']:.3f}, {known['high']:.3f}]"
    return figure, "-" if best is None else f"{best:.3f}", str(known.get("verdict", "-"))


if __name__ == "__main__":
    main()
