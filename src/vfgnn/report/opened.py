"""What the label holder of a sealed run can make of what is opened to it, measured on public benchmarks.

Beside it stands what it can do with nothing opened, and what the same attack finds in the pooled model's own outputs.
"""

from vfgnn.audit.case import PartyRole
from vfgnn.experiments.claims import NAMES
from vfgnn.report.benchmark import Benchmark, Quoted
from vfgnn.report.grid import Grid

OPENS = {"classes": "edges from classes", "scores": "edges from scores"}
DATASETS = ("cora", "citeseer")


def opened_grid(measured: Benchmark) -> Grid:
    """AUC of edges of the other holder, two holders."""
    found = {(dataset, opens): _quoted(measured, dataset, opens) for dataset in DATASETS for opens in OPENS}
    rows = [("nothing: own data and all labels", *(_figure(found[one, "classes"].baseline) for one in DATASETS))]
    for opens in OPENS:
        rows.append((f"predicted {opens}", *(_figure(found[one, opens].value) for one in DATASETS)))
        rows.append(
            ("the same of the pooled model, in the clear", *(_figure(found[one, opens].pooled) for one in DATASETS))
        )
    return Grid(
        "edges of the other holder, AUC", ("opened to the label holder", *(NAMES[one] for one in DATASETS)), tuple(rows)
    )


def _quoted(measured: Benchmark, dataset: str, opens: str) -> Quoted:
    role = PartyRole.LABEL_HOLDER
    return measured.worst(role, "edges", attack=OPENS[opens], protocol="sealed", opens=opens, dataset=dataset)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
