"""What a run's privacy settings mean, in words and numbers: before the run, and with what was really spent after it.

Public numbers only, and (at one holder) its own ledger and the number of its own edges.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from vfgnn.agreement import Agreement
from vfgnn.privacy import input_perturbation
from vfgnn.privacy.calibration import Adjacency
from vfgnn.privacy.ledger import ALL, Release, Unit, total_epsilon, worst
from vfgnn.privacy.mechanisms import GaussianMechanism
from vfgnn.privacy.own_mechanism import release_of
from vfgnn.privacy.publishing import RowNoise, affordable_epochs, gradient_mechanism, planned_releases, row_mechanism
from vfgnn.settings import Privacy

UNITS: tuple[Unit, ...] = ("row", "edge", "label")


@dataclass(frozen=True)
class Guarantee:
    """One thing that is noised: for whom, by how much, how often, and what that comes to."""

    what: str
    unit: str
    mechanism: str
    epsilon_per_release: float
    releases: dict[str, int]
    epsilon_total: float
    delta: float
    noise_multiplier: float | None = None
    signal_to_noise: float | None = None
    adjacency: str | None = None
    calibration: str | None = None
    note: str = ""

    def lines(self) -> list[str]:
        """For people."""
        releases = ", ".join(f"{count} {name}" for name, count in self.releases.items()) or "none"
        found = [f"{self.what}: unit {self.unit}; {self.mechanism}"]
        if self.noise_multiplier is not None:
            found.append(
                f"adjacency {self.adjacency}, calibration {self.calibration}, noise multiplier "
                f"{self.noise_multiplier:.4f}, norm of a row to its noise {self.signal_to_noise:.3f}"
            )
        found.append(
            f"releases: {releases}; epsilon {self.epsilon_per_release:.4g} each, total {self.epsilon_total:.4g} "
            f"at delta {self.delta:g}"
        )
        return [*found, self.note] if self.note else found


@dataclass(frozen=True)
class Statement:
    """All guarantees of a run at one holder, and what none of them covers."""

    guarantees: tuple[Guarantee, ...]
    not_covered: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, object]:
        """For records."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people; nothing where nothing is noised."""
        if not self.guarantees:
            return []
        found = [line for guarantee in self.guarantees for line in guarantee.lines()]
        return [*found, *self.notes, "not covered: " + "; ".join(self.not_covered)]


def statement(
    agreement: Agreement,
    *,
    spent: Iterable[Release] | None = None,
    edges: int | None = None,
    labels: bool = True,
    rows: RowNoise | None = None,
) -> Statement:
    """Before a run (`spent` is None: what it may come to at most), or after it (what a ledger says).

    `edges`: how many the holder has, by its own count; `labels`: whether it is the label holder;
    `rows`: its own mechanism, if it does not use the one that was agreed on.
    """
    privacy, epochs = agreement.settings.privacy, agreement.settings.epochs
    trained = affordable_epochs(privacy, epochs)
    known = None if spent is None else list(spent)
    found: list[Guarantee] = []
    rows = rows or row_mechanism(privacy, epochs)
    gradients = gradient_mechanism(privacy, epochs) if labels else None
    # Rows and gradients of the same node are the same unit: the total is over both.
    together = [_line(one) for one in (rows, gradients) if one is not None] * planned_releases(trained)
    for what, mechanism in (("published rows", rows), ("gradients of z_L", gradients)):
        if mechanism is not None:
            width = agreement.settings.dim if what == "published rows" else agreement.hidden_dim
            found.append(_repeated(what, mechanism, privacy, planned_releases(trained), known, width, together))
    if privacy.edge_epsilon is not None:
        found.append(_edges(privacy.edge_epsilon, privacy, agreement.nodes, known, edges))
    if privacy.label_epsilon is not None and labels:
        found.append(_labels(privacy.label_epsilon, privacy, agreement.classes, known))
    notes = []
    if trained < epochs:
        notes.append(
            f"training ends after {trained} of {epochs} epochs: there the budget of {privacy.budget_epsilon:g} ends"
        )
    return Statement(tuple(found), not_covered(agreement), (*notes, *_budget_notes(privacy, known)))


def _budget_notes(privacy: Privacy, known: list[Release] | None) -> list[str]:
    budget = privacy.budget_epsilon
    if budget is None:
        return []
    if known is None:
        return [f"budget: {budget:g} for any row, any edge and any label, each over all runs in the ledger"]
    left = {
        unit: budget - total_epsilon(exposed, privacy.delta, privacy.adjacency)
        for unit in UNITS
        if (exposed := worst(known, unit))
    }
    return [f"budget: of {budget:g} for one {unit}, {max(0.0, rest):.4g} is left" for unit, rest in left.items()]


def _repeated(
    what: str,
    used: RowNoise,
    privacy: Privacy,
    planned: int,
    spent: list[Release] | None,
    width: int,
    together: list[Release],
) -> Guarantee:
    kind = "rows" if what == "published rows" else "gradient"
    per_release = total_epsilon([_line(used)], privacy.delta, privacy.adjacency)
    gaussian = isinstance(used, GaussianMechanism)
    if spent is None:
        releases = {"of one row, at most": planned}
        total = total_epsilon(together, privacy.delta, privacy.adjacency)
    else:
        mine = [release for release in spent if release.what == kind]
        releases = dict(Counter(f"of {name} rows" for release in mine for name in release.classes))
        total = total_epsilon(worst(spent, "row"), privacy.delta, privacy.adjacency)
    note = ""
    if privacy.calibration == "classical" and gaussian:
        claimed = privacy.row_epsilon if kind == "rows" else privacy.gradient_epsilon
        note = f"the classical formula says {claimed:g} where exactly {per_release:.4g} holds"
    return Guarantee(
        what=what,
        unit="one row of one message",
        mechanism=used.described,
        epsilon_per_release=per_release,
        releases=releases,
        epsilon_total=total,
        delta=privacy.delta,
        noise_multiplier=used.cost.noise_multiplier if gaussian else None,
        signal_to_noise=used.signal_to_noise(width),
        adjacency=used.adjacency,
        calibration=privacy.calibration if gaussian else None,
        note=note,
    )


def _line(used: RowNoise) -> Release:
    return release_of(used, run="", step=None, what="rows", classes=(ALL,))


def _edges(epsilon: float, privacy: Privacy, nodes: int, spent: list[Release] | None, edges: int | None) -> Guarantee:
    mine = [Release("", None, "edges", "edge", (ALL,), epsilon=epsilon)] if spent is None else worst(spent, "edge")
    note = ""
    if edges is not None:
        kept, real = input_perturbation.edge_meaning(nodes, edges, epsilon)
        note = (
            f"a noised list has {100 * kept:.2f} % of the true edges; a listed edge is real with probability {real:.2f}"
        )
    return Guarantee(
        what="edges",
        unit="one edge of one holder",
        mechanism="randomised response, once"
        + (", exchanged among the holders" if privacy.publish_noised_edges else ""),
        epsilon_per_release=epsilon,
        releases={"of the edge list": len(mine)},
        epsilon_total=total_epsilon(mine, privacy.delta, privacy.adjacency),
        delta=0.0 if len(mine) <= 1 else privacy.delta,
        note=note,
    )


def _labels(epsilon: float, privacy: Privacy, classes: int, spent: list[Release] | None) -> Guarantee:
    mine = [Release("", None, "labels", "label", (ALL,), epsilon=epsilon)] if spent is None else worst(spent, "label")
    kept = input_perturbation.keep_probability(epsilon, classes)
    return Guarantee(
        what="labels",
        unit="one label for training or validation",
        mechanism=f"randomised response over {classes} classes, once",
        epsilon_per_release=epsilon,
        releases={"of the labels": len(mine)},
        epsilon_total=total_epsilon(mine, privacy.delta, privacy.adjacency),
        delta=0.0 if len(mine) <= 1 else privacy.delta,
        note=f"{100 * kept:.1f} % of the labels stay as they are",
    )


def not_covered(agreement: Agreement) -> tuple[str, ...]:
    """What a curious party may learn beside all this."""
    privacy, found = agreement.settings.privacy, []
    if privacy.row_epsilon is not None:
        found.append("a row is neither a node nor an edge: a node's features and edges act on its neighbours' rows too")
    if agreement.collaborative:
        found.append("features, against the holders that see h0 (leak meter)")
        if privacy.row_epsilon is not None:
            found.append("rows and edges, against the holders that see h0: noise on rows is against the server")
    elif privacy.row_epsilon is None:
        found.append("features, against the server")
    if agreement.exposed_publishers:
        found.append("rows, against the label holder, which can rebuild them from z_L")
    if privacy.edge_epsilon is None:
        found.append("edges" if privacy.row_epsilon is None else "edges, beyond what the noise on rows hides")
    if privacy.label_epsilon is None:
        found.append(
            "labels" if privacy.gradient_epsilon is None else "labels, beyond what the noise on gradients hides"
        )
    if agreement.settings.publish == "needed":
        found.append("which nodes are labelled")
    found.append("that a node is there at all")
    return tuple(found)


def spent(releases: Iterable[Release], delta: float, budget: float | None = None) -> list[dict[str, object]]:
    """What a ledger comes to over all runs, for each unit, and what a budget leaves; rows with either adjacency."""
    known, found = list(releases), list[dict[str, object]]()
    units: tuple[tuple[Unit, Adjacency], ...] = (
        ("row", "zero_out"),
        ("row", "replace_one"),
        ("edge", "zero_out"),
        ("label", "replace_one"),
    )
    for unit, adjacency in units:
        exposed = worst(known, unit)
        if exposed or budget is not None:
            total = total_epsilon(exposed, delta, adjacency)
            shown = adjacency if unit == "row" else "-"
            left = {} if budget is None else {"epsilon_left": max(0.0, budget - total)}
            found.append({"unit": unit, "adjacency": shown, "releases": len(exposed), "epsilon_total": total, **left})
    return found
