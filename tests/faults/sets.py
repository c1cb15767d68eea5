"""Sets of tables of one organisation, each with one fault in it; written anew for each test."""

import csv
import random
from dataclasses import dataclass, field
from pathlib import Path

from vfgnn.data.faults import TableFault

COUNT = 240
PREFIX = "0047"  # of every id, so that an id is recognised wherever it is shown


@dataclass
class Case:
    """Good tables, as rows of cells; a fault changes them."""

    nodes: list[list[str]] = field(default_factory=list)
    edges: list[list[str]] = field(default_factory=list)
    labels: list[list[str]] = field(default_factory=list)
    delimiter: dict[str, str] = field(default_factory=dict)
    encoding: dict[str, str] = field(default_factory=dict)
    party: str = ""  # more of party.toml

    @property
    def ids(self) -> list[str]:
        """Of all nodes."""
        return [row[0] for row in self.nodes[1:]]

    def add(self, name: str, cells: list[str]) -> None:
        """A column of the node table."""
        for row, cell in zip(self.nodes, [name, *cells], strict=True):
            row.append(cell)

    def write(self, folder: Path) -> Path:
        """The tables and a party.toml; keys there are none."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("nodes", "edges", "labels"):
            with (folder / f"{name}.csv").open("w", newline="", encoding=self.encoding.get(name, "utf-8")) as file:
                csv.writer(file, delimiter=self.delimiter.get(name, ",")).writerows(getattr(self, name))
        toml = 'name = "bank"\nkey = "bank.key.pem"\ncertificate = "bank.certificate.pem"\n' + self.party
        tables = '\n[data]\nnodes = "nodes.csv"\nedges = "edges.csv"\nlabels = "labels.csv"\n'
        (folder / "party.toml").write_text(toml + tables)
        return folder / "party.toml"


def good() -> Case:
    """Nothing is wrong with it."""
    draw = random.Random(22)
    ids = [f"{PREFIX}{number:05d}" for number in draw.sample(range(100_000), COUNT)]
    fraud = {one: draw.random() < 0.2 for one in ids}
    made = Case(nodes=[["id", "balance", "city", "opened"]], edges=[["source", "target"]], labels=[["id", "label"]])
    for one in ids:
        day = f"20{draw.randrange(10, 24)}-{draw.randrange(1, 13):02d}-{draw.randrange(1, 29):02d}"
        made.nodes.append([one, f"{draw.gauss(1000 + 400 * fraud[one], 500):.2f}", draw.choice(["Köln", "Bonn"]), day])
        made.labels.append([one, "fraud" if fraud[one] else "honest"])
    pairs = {tuple(sorted(draw.sample(ids, 2))) for _ in range(2 * COUNT)}
    made.edges += [list(pair) for pair in sorted(pairs)]
    return made


def label_among_features() -> Case:
    """Somebody joined the labels to the nodes."""
    made = good()
    made.add("Label", [label for _, label in made.labels[1:]])
    return made


def determines_label() -> Case:
    """A sum that is booked when a fraud is known; a few rows are not as they should be."""
    draw, made = random.Random(1), good()
    told = [(label == "fraud") != (draw.random() < 0.004) for _, label in made.labels[1:]]
    made.add("written_off", [f"{draw.uniform(50, 900):.2f}" if one else "0" for one in told])
    return made


def unknown_ends() -> Case:
    """The edges are between e-mail addresses."""
    made = good()
    made.edges[1:] = [[f"{one}@mail", f"{other}@mail"] for one, other in made.edges[1:-9]] + made.edges[-9:]
    return made


def classes_alike() -> Case:
    """Two people wrote the labels."""
    made = good()
    made.labels[1:30] = [[one, label.capitalize()] for one, label in made.labels[1:30]]
    made.labels[30:40] = [[one, f"{label} "] for one, label in made.labels[30:40]]
    return made


def lost_zeros() -> Case:
    """A spreadsheet opened the edges, and took ids for numbers."""
    made = good()
    made.edges[1:] = [[str(int(one)), str(int(other))] for one, other in made.edges[1:]]
    return made


def semicolons() -> Case:
    """Exported where the comma is a decimal sign, with a party.toml that says nothing of it."""
    made = good()
    made.nodes[1:] = [[one, balance.replace(".", ","), *rest] for one, balance, *rest in made.nodes[1:]]
    made.delimiter["nodes"] = ";"
    return made


def latin_1() -> Case:
    """Exported by an old program: names of cities have other bytes."""
    made = good()
    made.encoding["nodes"] = "latin-1"
    return made


def no_header() -> Case:
    """The first line of the edges is an edge."""
    made = good()
    del made.edges[0]
    return made


def many_words() -> Case:
    """A remark in free text."""
    made = good()
    made.add("remark", [f"called {number} times" for number in range(COUNT)])
    return made


def repeated_ids() -> Case:
    """Two exports in one file."""
    made = good()
    made.nodes += [list(row) for row in made.nodes[1:13]]
    return made


def decimal_comma() -> Case:
    """The delimiter is stated, the decimal sign is not: every balance would be a word."""
    made = semicolons()
    made.party = ""
    made.delimiter["nodes"] = ","
    return made


def thousands() -> Case:
    """Numbers written for people."""
    made = good()
    made.add("limit", [f"{1000 + 37 * number:,}" for number in range(COUNT)])
    return made


def american_dates() -> Case:
    """Dates in a format that could be one of two."""
    made = good()
    made.add("seen", [f"{1 + n % 12:02d}/{1 + n % 28:02d}/{1990 + n % 30}" for n in range(COUNT)])
    return made


def empty_ids() -> Case:
    """Rows that a spreadsheet left at the end."""
    made = good()
    made.nodes += [["", "", "", ""] for _ in range(3)]
    return made


SETS = {
    "label among features": (label_among_features, TableFault.LABEL_AMONG_FEATURES, "nodes.csv", "Label", 0),
    "determines label": (determines_label, TableFault.DETERMINES_LABEL, "nodes.csv", "written_off", 0),
    "unknown ends": (unknown_ends, TableFault.UNKNOWN_ENDS, "edges.csv", "source", None),
    "classes alike": (classes_alike, TableFault.CLASSES_ALIKE, "labels.csv", "label", COUNT),
    "lost zeros": (lost_zeros, TableFault.LOST_ZEROS, "edges.csv", "source", None),
    "semicolons": (semicolons, TableFault.DELIMITER, "nodes.csv", None, 0),
    "latin-1": (latin_1, TableFault.ENCODING, "nodes.csv", None, 0),
    "no header": (no_header, TableFault.NO_HEADER, "edges.csv", None, 0),
    "many words": (many_words, TableFault.TOO_MANY_WORDS, "nodes.csv", "remark", COUNT),
    "repeated ids": (repeated_ids, TableFault.ID_REPEATED, "nodes.csv", "id", 12),
    "decimal comma": (decimal_comma, TableFault.DECIMAL_SIGN, "nodes.csv", "balance", None),
    "thousands": (thousands, TableFault.NUMBERS_AS_TEXT, "nodes.csv", "limit", COUNT),
    "american dates": (american_dates, TableFault.DATES_AS_TEXT, "nodes.csv", "seen", None),
    "empty ids": (empty_ids, TableFault.ID_MISSING, "nodes.csv", "id", 3),
}
"""What makes the tables; the fault that is to be named, its file and column, and how many rows it has (None: any)."""
