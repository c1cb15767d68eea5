"""A small federation whose holders bring tables: files of all parties, as `vfgnn init` writes them."""

import csv
import random

from typer.testing import CliRunner

from vfgnn.cli.main import app
from vfgnn.files import load_federation
from vfgnn.lab.local_files import LocalFederation, free_ports


def vfgnn(*words):
    """A command in this process; its output, or its error raised."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def write(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def people(count=60, seed=0):
    """Ids with a hidden class that every holder's columns and edges say something of."""
    draw = random.Random(seed)
    ids = [f"P{draw.randrange(10**6):06d}-{i}" for i in range(count)]
    return ids, {one: int(draw.random() < 0.4) for one in ids}, draw


def write_tables(folder, holders=("bank", "shop"), *, count=60, seed=0):
    """Each holder knows most of the people, in an order of its own, and some that nobody else knows."""
    ids, kind, draw = people(count, seed)
    for number, name in enumerate(holders):
        known = [one for one in ids if draw.random() < 0.9] + [f"only-{name}-{i}" for i in range(5)]
        draw.shuffle(known)
        rows = [[one, round(kind.get(one, 0) + draw.gauss(0, 0.7), 4), draw.randrange(9)] for one in known]
        write(folder / name / "nodes.csv", ["id", f"a{number}", f"b{number}"], rows)
        pairs = []
        while len(pairs) < 3 * count:
            one, other = draw.sample(known, 2)
            if kind.get(one, 0) == kind.get(other, 0) or draw.random() < 0.2:
                pairs.append([one, other])
        write(folder / name / "edges.csv", ["source", "target"], pairs)
    write(folder / holders[0] / "labels.csv", ["id", "label"], [[one, ("good", "bad")[kind[one]]] for one in ids])
    return ids, kind


def federation_of_tables(
    folder, holders=("bank", "shop"), *, mode="individual", dealer=False, flags=(), settings=(), **tables
):
    """Keys, cards and files of every party of the paper's protocol, on loopback."""
    changes = [word for change in ("epochs=20", "patience=20", *settings) for word in ("--set", change)]
    middle = ("server", *(["dealer"] if dealer else []))
    return _federation(folder, holders, middle, ["--protocol", "split", "--mode", mode, *flags, *changes], **tables)


def sealed_federation_of_tables(folder, holders=("bank", "shop"), *, flags=(), settings=(), **tables):
    """The same of the sealed protocol; a server is there for three holders or more, whose ids are aligned by tokens."""
    middle = ("server", "dealer") if len(holders) > 2 else ("dealer",)
    changes = [word for change in settings for word in ("--set", change)]
    local = _federation(folder, holders, middle, [*flags, *changes], **tables)
    for toml in (folder / name / "party.toml" for name in holders if local.file.settings.sealed.opens == "scores"):
        toml.write_text(f"allow_scores = true\n{toml.read_text()}")  # every holder's consent
    return local


def _federation(folder, holders, middle, words, **tables):
    write_tables(folder, holders, **tables)
    names = [*middle, *holders]
    for name, port in zip(names, free_ports(len(names)), strict=True):
        home = folder / name
        vfgnn("keys", "new", name, "--folder", home)
        own = ["init", "party", name, "--folder", home, "--address", f"localhost:{port}"]
        if name in holders:
            own += ["--nodes", home / "nodes.csv", "--edges", home / "edges.csv"]
        if name == holders[0]:
            own += ["--labels", home / "labels.csv"]
        vfgnn(*own)
    cards = [folder / name / f"{name}.card.toml" for name in names]
    vfgnn("init", "federation", *cards, "--out", folder / "federation.toml", *words)
    return LocalFederation(folder, load_federation(folder / "federation.toml"))
