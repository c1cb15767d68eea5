"""The table that `vfgnn demo` ends with: each model's test accuracy, and what was opened to whom for it.

What the two federations opened stands in their run folders: messages that were logged, meters, counts. What the models
beside them need follows from who has which data.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from vfgnn.lab.local_files import LocalFederation
from vfgnn.lab.scenario import Scenario
from vfgnn.privacy.input_perturbation import pairs_of
from vfgnn.records import Outcome
from vfgnn.report.run import sealed, split
from vfgnn.report.run.records import Kept

BAR = 12
REPORT = "report.html"
MODELS = {"split": "federated (paper)", "sealed": "sealed"}  # by protocol
LOOKS = {"split": "bold", "sealed": "bold green"}
LENGTHS = {"split": "epochs", "sealed": "steps"}
Opened = tuple[tuple[str, str], ...]  # to whom, and what
Trained = Mapping[str, LocalFederation]  # by protocol


@dataclass(frozen=True)
class DemoRow:
    """One model."""

    model: str
    test: float  # accuracy
    opened: Opened
    look: str = ""

    def to_json(self) -> dict[str, object]:
        """What `vfgnn demo --json` writes of it."""
        return {"model": self.model, "test": self.test, "opened": "; ".join(self.told)}

    @property
    def told(self) -> list[str]:
        """To whom what was opened, a line for each."""
        return [f"{who}: {what}" for who, what in self.opened] or ["nothing"]


def rows_of(scenario: Scenario, trained: Trained, alone: Mapping[str, Outcome], pooled: Outcome) -> list[DemoRow]:
    """Each holder alone, the federation by each protocol, and everything in one place."""
    leader, labels = scenario.names[0], scenario.labels
    known = f"{len(labels.train) + len(labels.val):,} labels"
    whole = f"{scenario.whole.x.shape[1]:,} columns, {len(pairs_of(scenario.whole.edge_index)):,} edges, {known}"
    rows = []
    for model, outcome in alone.items():
        name = model.removesuffix(" alone")
        needed = () if name == leader else ((name, f"{known} of {leader}"),)
        rows.append(DemoRow(model, outcome.test_accuracy, needed))
    for protocol, local in trained.items():
        rows.append(DemoRow(MODELS[protocol], local.outcome.test_accuracy, opened_by(local), LOOKS[protocol]))
    return [*rows, DemoRow("pooled", pooled.test_accuracy, (("whoever pools", whole),))]


def opened_by(local: LocalFederation) -> Opened:
    """By the records of all parties."""
    kept = [Kept.read(local.run_folder(name)) for name in local.names]
    return tuple((sealed if local.file.agreement.sealed else split).openings(kept))


def show_rows(console: Console, rows: list[DemoRow], *, title: str) -> None:
    """The table."""
    table = Table(title=title, show_lines=True, caption="alone and pooled: the sealed model, trained in the clear")
    table.add_column("model", no_wrap=True)
    table.add_column("test", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("opened, and to whom")
    for row in rows:
        table.add_row(row.model, f"{row.test:.3f}", "█" * round(BAR * row.test), "\n".join(row.told), style=row.look)
    console.print(table)


def show_trained(console: Console, trained: Trained) -> None:
    """How long each training was, what it sent, and where the page about it is."""
    for protocol, local in trained.items():
        length, sent = local.outcome.history[-1].epoch, sum(link.bytes for link in local.traffic.links.values())
        told = f"{MODELS[protocol]}: {length} {LENGTHS[protocol]}, {sent / 1e6:,.0f} MB on all links; report:"
        console.print(f"{told} [bold]{local.folder / REPORT}[/]", soft_wrap=True, highlight=False)
