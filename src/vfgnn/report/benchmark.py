"""What attacks found on public benchmarks, for pages of runs to quote. `vfgnn audit` wrote both files.

leaks.json has both protocols, two data sets, two and three holders; mitigations.json has a run for each mitigation.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Quoted:
    """One figure, with what stands beside it."""

    attack: str
    value: float
    baseline: float
    pooled: float | None


@dataclass(frozen=True)
class Benchmark:
    """One of the two files."""

    content: Mapping[str, Any]

    @property
    def command(self) -> str:
        """That measured all of it."""
        return str(self.content["command"])

    @property
    def date(self) -> str:
        """When it did."""
        return str(self.content["date"])

    def worst(self, role: str, target: str, *, attack: str | None = None, **run: object) -> Quoted:
        """Of a role's attacks on a target the one that is furthest above its baseline, or of one `attack`.

        `run`: facts that tell which one it was; two holders on Cora, the paper's protocol, unless they say otherwise.
        """
        wanted = {"dataset": "cora", "holders": 2, "protocol": "split", **run}
        named = [one for one in self.content["runs"] if all(one[key] == value for key, value in wanted.items())]
        keys = {(one["run"], one["protocol"]) for one in named}
        rows = [row for row in self.content["rows"] if (row["run"], row["protocol"]) in keys and "auc" in row]
        found = [row for row in rows if row["role"] == role and row["target"] == target]
        found = [row for row in found if attack in (None, row["attack"])]
        row = max(found, key=lambda one: one["difference"][0])
        return Quoted(row["attack"], row["auc"], row["baseline"], row["pooled_auc"])


@cache
def leaks() -> Benchmark:
    """Of the protocols as they are."""
    return _read("leaks.json")


@cache
def mitigations() -> Benchmark:
    """Of mitigations, one at a time."""
    return _read("mitigations.json")


def _read(name: str) -> Benchmark:
    return Benchmark(json.loads((resources.files("vfgnn.report") / name).read_text()))
