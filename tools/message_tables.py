"""The tables of messages in docs/protocol.md and docs/sealed.md, from the programs themselves.

    python tools/message_tables.py docs/protocol.md
    python tools/message_tables.py docs/sealed.md

Writes between the markers `<!-- messages of NAME -->` and `<!-- end -->`. A test compares the page with the programs.
"""

import argparse
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from vfgnn.agreement import DEALER, SERVER, Agreement, HolderShape, make_agreement
from vfgnn.alignment.program import AlignmentPlan, aligning, most_bytes
from vfgnn.common_programs import calling, leaving
from vfgnn.messages import Declared, Kind
from vfgnn.mpc.bits import packed_bytes
from vfgnn.program import Program
from vfgnn.rows import RowSet
from vfgnn.sealed.program import SealedMoment
from vfgnn.sealed.program import training as sealed_training
from vfgnn.secure_gnn.program import ServerlessAgreement
from vfgnn.secure_gnn.program import training as secure_training
from vfgnn.settings import Settings
from vfgnn.split.program import prediction, training
from vfgnn.split.steps import Moment, Rows

HEAD = "| phase | message | from -> to | bytes | the receiver learns |\n|---|---|---|---|---|\n"
# Sizes that no two letters share, so that a shape can be read as a formula.
NODES, DIM, CLASSES, COLUMNS, PAIRS, IDS = 1009, 61, 7, (307, 311, 313), 10_007, 997
TRAIN, VAL = 503, 401
BOUNDS = {"A": 2003, "B": 3001, "C": 0}
SHOWN = 8  # sizes of one kind of message
LETTERS = {
    NODES: "n",
    DIM: "d",
    CLASSES: "c",
    **dict.fromkeys(COLUMNS, "p_k"),
    **{one + other: "sum of p_k" for one in COLUMNS for other in COLUMNS if one != other},
    PAIRS: "pairs",
    IDS: "ids",
    most_bytes(IDS): "35 ids + 16",
    **dict.fromkeys((TRAIN, VAL, TRAIN + VAL), "rows"),
    **{NODES + bound: "N_i" for bound in BOUNDS.values() if bound},
    CLASSES - 1: "w",
    TRAIN * CLASSES: "rows c",
    packed_bytes(NODES * CLASSES): "n c / 8",
    packed_bytes(4 * VAL * CLASSES): "4 rows c / 8",  # four ridges
}


def example(**settings: object) -> Agreement:
    """Two holders with features and edges, one with features alone; everything that can be on is on."""
    shapes = [HolderShape(name=name, features=p, edges=name != "C") for name, p in zip("ABC", COLUMNS, strict=True)]
    privacy = {"edge_epsilon": 8.0, "publish_noised_edges": True, "noised_edge_bound": PAIRS}
    made = Settings.model_validate({"dim": DIM, "privacy": privacy, **settings})
    return make_agreement(nodes=NODES, classes=CLASSES, holders=shapes, label_holder="A", settings=made)


def serverless() -> ServerlessAgreement:
    """The baseline's, in which all holders have edges."""
    plain = example(privacy={}, combine="mean").model_dump()
    for holder in plain["holders"]:
        holder["edges"] = True
    return ServerlessAgreement.model_validate(plain)


def sealed() -> Agreement:
    """The same holders with the sealed protocol, in the order of labels."""
    fields = example(privacy={}, protocol="sealed", sealed={"order": "labels"}).model_dump()
    for holder in fields["holders"]:
        holder["entry_bound"] = BOUNDS[holder["name"]]
    return Agreement.model_validate(fields)


def table_of(program: Program[Any], agreement: Agreement) -> str:
    """One line for each kind of message in each phase."""
    found: dict[tuple[str, Kind], tuple[list[str], list[str]]] = {}
    for phase, moment in product(program.phases, map(_example, program.bounds)):
        for message in phase.messages(moment):
            ways, sizes = found.setdefault((phase.name, message.kind), ([], []))
            ways.append(f"{_role(message.sender, agreement)} -> {_role(message.receiver, agreement)}")
            sizes.append(_size(message))
    lines = [
        f"| {phase_name} | `{kind}` | {_joined(ways)} | {_listed(sizes)} | {kind.tells} |"
        for (phase_name, kind), (ways, sizes) in found.items()
    ]
    return HEAD + "\n".join(lines) + "\n"


def _example(moment: Any) -> Any:  # noqa: ANN401 (a program's own)
    if isinstance(moment, Moment):
        return replace(moment, rows=Rows(RowSet(torch.arange(TRAIN)), RowSet(torch.arange(VAL))))
    return replace(moment, train=TRAIN, val=VAL) if isinstance(moment, SealedMoment) else moment


def _role(name: str, agreement: Agreement) -> str:
    if name in (SERVER, DEALER):
        return name
    return "label holder" if name == agreement.label_holder else "holder"


def _joined(ways: list[str]) -> str:
    """The label holder is a holder: it is named where no other holder is."""
    pairs = list(dict.fromkeys(ways))
    general = [way.replace("label holder", "holder") for way in pairs]
    plain = [way for way in pairs if "label holder" not in way]
    shown = dict.fromkeys(way if general[i] not in plain else general[i] for i, way in enumerate(pairs))
    return "; ".join(shown)


def _listed(sizes: list[str]) -> str:
    """Each once; where there are many, they are in the files of mpc/, beside the steps that send them."""
    different = list(dict.fromkeys(sizes))
    return ", ".join(different) if len(different) <= SHOWN else f"{len(different)} sizes"


def _size(message: Declared) -> str:
    """Bytes as a formula of the letters in the text."""
    factor, letters = message.dtype.itemsize, []
    for length in message.shape:
        if length in LETTERS:
            letters.append(LETTERS[length])
        else:
            factor *= length
    return " ".join([*([str(factor)] if factor > 1 or not letters else []), *letters])


def tables() -> dict[str, str]:
    """By the name in the marker."""
    agreement, secure, closed = example(), serverless(), sealed()
    parties, leader = agreement.parties, agreement.label_holder
    tokens = AlignmentPlan("tokens", agreement.holder_names, leader, agreement.others, IDS)
    psi = AlignmentPlan("psi", ("A", "B"), "A", (SERVER, "B"), IDS)
    return {
        "training": table_of(training(agreement), agreement),
        "leaving": table_of(leaving(parties, leader), agreement),
        "prediction": table_of(prediction(agreement, new_nodes=True), agreement),
        "calling": table_of(calling(parties, leader), agreement),
        "alignment by tokens": table_of(aligning(tokens), agreement),
        "alignment by psi": table_of(aligning(psi), agreement),
        "sealed training": table_of(sealed_training(closed), closed),
        "SecureGNN": table_of(secure_training(secure), secure),
    }


def filled(page: str) -> str:
    """The page with every table as the programs have it."""
    for name, table in tables().items():
        between = re.compile(rf"(<!-- messages of {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = between.sub(lambda found, table=table: found[1] + table + found[2], page)  # type: ignore[misc]
    return page


def main() -> None:
    """Write the tables into a page."""
    parser = argparse.ArgumentParser(description="Write the tables of messages into a page.")
    parser.add_argument("page", type=Path)
    page = parser.parse_args().page
    page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
