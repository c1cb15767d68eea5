"""Both protocols between processes, on several splits: python examples/fraud/splits.py --data DIR --splits 3

Each split of the reviewed accounts follows from the bank's key, so for each one all parties make new keys. Then they
run the commands of README.md, first with `--protocol sealed`, then with `--protocol split`: same keys and tables.
Prints what the bank was told at the end of each run. Scores are opened, because average precision needs them.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from statistics import mean, pstdev

from rich.console import Console
from rich.table import Table

# What each organisation calls its own things, as in README.md.
TABLES = {
    "bank": "--nodes accounts.csv --id account --edges transfers.csv --source from --target to --labels fraud.csv "
    "--label fraud",
    "payments": "--nodes cards.csv --id account --edges co_payments.csv --source account_a --target account_b",
    "telecom": "--nodes subscribers.csv --id account --edges calls.csv --source caller --target callee",
}
FIRST_PORT = 17201
FILES = ("--nodes", "--edges", "--labels")
PROTOCOLS = {"sealed": ("--set", "sealed.opens=scores"), "split": ("--protocol", "split")}
METRICS = ("accuracy", "f1", "auc", "average_precision")


def vfgnn(*words: object, folder: Path) -> subprocess.Popen[bytes]:
    """One command, started; what it says goes to a file."""
    command = [sys.executable, "-m", "vfgnn", *map(str, words)]
    with (folder / "said.txt").open("ab") as said:
        return subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)  # noqa: S603 (our own program)


def finish(folder: Path, *started: subprocess.Popen[bytes]) -> None:
    """Wait for all; if one failed, say what was said last and end."""
    codes = [one.wait() for one in started]
    if any(codes):
        raise SystemExit((folder / "said.txt").read_text()[-2000:])


def party(name: str, port: int, data: Path, folder: Path) -> None:
    """A key, a party file and a card."""
    finish(folder, vfgnn("keys", "new", name, "--folder", name, folder=folder))
    words = TABLES.get(name, "").split()
    own = [data / name / word if flag in FILES else word for flag, word in zip(["", *words], words, strict=False)]
    where = ("--folder", name, "--address", f"localhost:{port}", *(["--allow-scores"] if name in TABLES else []))
    finish(folder, vfgnn("init", "party", name, *where, *own, folder=folder))


def run(protocol: str, names: list[str], folder: Path) -> dict[str, float]:
    """One run of all parties; what the bank has in its records."""
    public = folder / f"{protocol}.toml"
    cards = [f"{name}/{name}.card.toml" for name in names]
    finish(folder, vfgnn("init", "federation", *cards, "--out", public, *PROTOCOLS[protocol], folder=folder))
    taking_part = names if protocol == "sealed" else [name for name in names if name != "dealer"]
    finish(folder, *(vfgnn("run", public, f"{name}/party.toml", folder=folder) for name in taking_part))
    about = json.loads((folder / "bank" / "run" / "run.json").read_text())
    scores: dict[str, float] = about["outcome"]["scores"]
    return scores


def main() -> None:
    """Run, print, and write."""
    parser = argparse.ArgumentParser(description="Both protocols between processes, on several splits.")
    parser.add_argument("--data", type=Path, required=True, help="the folder that generate.py wrote")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write all scores here")
    given = parser.parse_args()
    names = ["server", "dealer", *TABLES]
    found: dict[str, list[dict[str, float]]] = {protocol: [] for protocol in PROTOCOLS}
    for _ in range(given.splits):
        with tempfile.TemporaryDirectory() as temporary:
            for name, port in zip(names, count(FIRST_PORT), strict=False):
                party(name, port, given.data.resolve(), Path(temporary))
            for protocol, reached in found.items():
                reached.append(run(protocol, names, Path(temporary)))
    table = Table("protocol", *(metric.replace("_", " ") for metric in METRICS))
    for protocol, reached in found.items():
        cells = [[one[metric] for one in reached] for metric in METRICS]
        table.add_row(protocol, *(f"{mean(cell):.3f} ± {pstdev(cell):.3f}" for cell in cells))
    Console().print(table)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
