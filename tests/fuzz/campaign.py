"""The process that attacks: for a given time, each target its share; what failed is kept once for each signature."""

import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.fuzz import files, frames, hellos, records, strangers
from tests.fuzz.attacked import Attacked
from tests.fuzz.case import ACCEPTED, CORPUS, HUNG, REFUSED, UNNAMED, Case, Outcome, path_of, write_case
from tests.fuzz.ground import Ground
from tests.fuzz.shrink import shrink
from tests.fuzz.targets import TARGETS, is_live, make_case, run_case

SHARES = {"frames": 0.3, "hellos": 0.2, "strangers": 0.15, "files": 0.2, "records": 0.15}  # of the time
WARM_UP = 0.2  # of the time; memory is compared with what it is then
MOST_KEPT, LARGEST_KEPT = 150, 200_000  # files of the corpus, bytes of one case
EVERY_S = 10.0  # a line where there is no terminal, and a look at the memory


@dataclass
class Tally:
    """What was done so far, and what came of it."""

    messages: int = 0
    tls_connections: int = 0
    files: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)  # by target
    signatures: Counter[str] = field(default_factory=Counter)
    kept: dict[str, str] = field(default_factory=dict)  # signature to file

    def add(self, case: Case, outcome: Outcome) -> None:
        self.verdicts[case.target, outcome.verdict] += 1
        self.tls_connections += is_live(case)
        if case.target in ("frames", "hellos"):
            self.messages += len(case.parts)
        elif case.target != "strangers":
            self.files += len(case.parts)

    def of(self, verdict: str) -> int:
        return sum(count for (_, found), count in self.verdicts.items() if found == verdict)

    def to_json(self, growth_mb: float) -> dict[str, float]:
        return {
            "messages": self.messages,
            "tls_connections": self.tls_connections,
            "files": self.files,
            "unnamed": self.of(UNNAMED),
            "hangs": self.of(HUNG),
            "rss_growth_mb": round(growth_mb, 1),
        }


class Campaign:
    """One attack of `seconds`; the cases follow from `seed`."""

    def __init__(self, seconds: float, seed: int, console: Console) -> None:
        self.seconds, self.seed, self.console, self.tally = seconds, seed, console, Tally()
        self._folder = Path(tempfile.mkdtemp(prefix="vfgnn-fuzz-"))
        self.ground = Ground(self._folder)
        self.attacked = Attacked(self._folder)
        self._used, self._numbers = Counter[str](), Counter[str]()

    def run(self) -> dict[str, float]:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        try:
            self._warm_up()
            began = said = measured = time.monotonic()
            with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as display:
                bar = display.add_task("", total=self.seconds)
                while (passed := time.monotonic() - began) < self.seconds:
                    self._step()
                    display.update(bar, completed=passed, description=self._line())
                    if passed > WARM_UP * self.seconds and time.monotonic() - measured > EVERY_S / 2:
                        measured = time.monotonic()
                        self.attacked.measure()
                    if not self.console.is_terminal and time.monotonic() - said > EVERY_S:
                        said = time.monotonic()
                        self.console.print(f"{self._line()}; {self.seconds - passed:.0f} s left")
            self.attacked.measure()
            return self.tally.to_json(self.attacked.growth_mb)
        finally:
            self.attacked.stop()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _warm_up(self) -> None:
        """Everything once with good files and messages, which must be accepted: else the cases prove nothing."""
        good = [Case(files.NAME, reader, ()) for reader in files.READERS]
        good += [Case(records.NAME, way, ()) for way in (records.WITHOUT_FIGURES, records.WITH_FIGURES)]
        good += [Case(frames.NAME, frames.LINK, ()), hellos.good_caller(self.ground)]
        for case in good:
            outcome = run_case(case, self.ground, self.attacked.ask)
            if outcome.verdict != ACCEPTED:
                raise RuntimeError(f"{case.target} {case.way}: a good case ended with {outcome}")

    def _step(self) -> None:
        """One case of the target that is furthest behind its share."""
        target = min(SHARES, key=lambda name: self._used[name] / SHARES[name])
        began, number = time.monotonic(), self._numbers[target]
        self._numbers[target] += 1
        case = make_case(target, self.seed, number, self.ground)
        outcome = run_case(case, self.ground, self.attacked.ask)
        if target == strangers.NAME and number % strangers.CHECKED == 0:
            outcome = outcome if outcome.failed else self._heard(hellos.good_caller(self.ground))
        self.tally.add(case, outcome)
        if outcome.failed:
            self._keep(case, outcome)
        self._used[target] += time.monotonic() - began

    def _heard(self, caller: Case) -> Outcome:
        """Whether the port still answers somebody who has a right to it."""
        outcome = run_case(caller, self.ground, self.attacked.ask)
        self.tally.tls_connections += 1
        if outcome.verdict == ACCEPTED:
            return Outcome(REFUSED)  # as the stranger before it was
        return Outcome(HUNG, outcome.said, f"{strangers.NAME}: a good caller is not answered any more")

    def _keep(self, case: Case, outcome: Outcome) -> None:
        """The first case of each signature, made smaller, without the names of this federation."""
        tally, signature = self.tally, outcome.signature
        tally.signatures[signature] += 1
        if tally.signatures[signature] > 1:
            return
        self.console.print(f"{outcome.verdict}: {signature}", markup=False)
        path = path_of(case, outcome)
        if path.exists():
            tally.kept[signature] = path.name
            return
        if outcome.verdict == UNNAMED:
            case = shrink(case, outcome, lambda smaller: run_case(smaller, self.ground, self.attacked.ask))
        if case.size <= LARGEST_KEPT and len(list(CORPUS.glob("*.json"))) < MOST_KEPT:
            portable = self.ground.portable
            case = replace(case, parts=tuple((label, portable(content)) for label, content in case.parts))
            said = (portable(outcome.said.encode()) or b"").decode()
            tally.kept[signature] = write_case(case, replace(outcome, said=said)).name

    def _line(self) -> str:
        tally = self.tally
        return (
            f"{tally.messages:,} messages, {tally.tls_connections:,} TLS connections, {tally.files:,} files; "
            f"{tally.of(UNNAMED)} unnamed, {tally.of(HUNG)} hangs, {self.attacked.growth_mb:+.0f} MB"
        )

    def table(self) -> Table:
        """By target, how the cases ended."""
        shown = Table("target", "accepted", "refused by name", "unnamed", "hung", title=f"seed {self.seed}")
        for target in TARGETS:
            counts = (self.tally.verdicts[target, verdict] for verdict in (ACCEPTED, REFUSED, UNNAMED, HUNG))
            shown.add_row(target, *(f"{count:,}" for count in counts))
        return shown

    def failures(self) -> Table:
        """By signature, how often, and the case that was kept."""
        shown = Table("failure", "times")
        shown.add_column("kept in tests/corpus", overflow="fold")
        for signature, count in self.tally.signatures.most_common():
            shown.add_row(signature, f"{count:,}", self.tally.kept.get(signature, "-"))
        return shown
