"""What a holder has spent: every noised release, on disk before the message leaves, over all runs on the same data.

A line of the ledger is a frozen `Release`: what was released, of which rows, with how much noise. Lines are chained
(counted_chain.py), so an edited or rolled back ledger is refused.
A kill between the line and the message counts a release that never happened: over, never under.

Totals are exact. Gaussian releases of one class of rows add up in closed form (1/m^2 adds); anything else goes through
dp-accounting. Units are kept apart: a row of a message, an edge, a label.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from vfgnn.counted_chain import CountedChain, read_entries
from vfgnn.errors import BudgetSpent, LedgerRefused
from vfgnn.privacy.calibration import Adjacency, epsilon_of

WHAT = "privacy ledger"
Unit = Literal["row", "edge", "label"]
TRAIN, VAL, OTHER, ALL = "train", "val", "other", "all"  # classes of rows: each counts for itself


@dataclass(frozen=True)
class Release:
    """One release. `classes`: the rows it holds.

    Gaussian ones have a multiplier; randomised response, and a mechanism of a holder's own, may have a pure epsilon.
    """

    run: str  # lines of one run are of the same classes of rows
    step: int | None
    what: str  # rows, gradient, edges, labels
    unit: Unit
    classes: tuple[str, ...]
    adjacency: Adjacency | None = None
    noise_multiplier: float | None = None
    epsilon: float | None = None
    categories: int | None = None  # of randomised response; 2 is the worst that any pure epsilon can be
    copy_id: str | None = None  # of the copy on the disk, which is sent again at no cost (copies.py)

    @property
    def possible(self) -> bool:
        """Whether a total can be given of it: some rows, and one cost, finite and above 0."""
        given = [cost for cost in (self.noise_multiplier, self.epsilon) if cost is not None]
        usable = len(given) == 1 and math.isfinite(given[0]) and given[0] > 0
        return usable and bool(self.classes) and (self.categories or 2) >= 2

    def multiplier(self, adjacency: Adjacency) -> float:
        """Of the same noise, seen with another adjacency."""
        known = self.noise_multiplier or math.inf
        if adjacency == self.adjacency:
            return known
        return known / 2 if adjacency == "replace_one" else known * 2

    def pure(self, adjacency: Adjacency) -> float:
        """The epsilon of one that is not Gaussian, seen with another adjacency: to any other row is by way of zero."""
        known = self.epsilon or 0.0
        return 2 * known if (self.adjacency, adjacency) == ("zero_out", "replace_one") else known


class Ledger:
    """A holder's releases; without a path, in memory for a simulation.

    `trained`: for a model that is trained already, whose inputs were noised then and are not noised again.
    """

    def __init__(self, path: Path | None = None, *, trained: bool = False) -> None:
        self.path, self.trained = path, trained
        self.releases: list[Release] = []
        self._chain: CountedChain | None = None
        if path is None:
            return
        chain = CountedChain(path, WHAT, LedgerRefused, lost="what was released cannot be taken back")
        try:
            self.releases = read_releases(path) if path.is_file() else []
        except BaseException:
            chain.close()
            raise
        self._chain = chain

    def refuse_fewer(self, known: int) -> None:
        """Refuse a ledger that has lost lines since somebody wrote down how many there were."""
        if self._chain is not None:
            self._chain.refuse_fewer(known)

    def charge(self, release: Release) -> None:
        """Write down a release; when this returns, it is on the disk, and the message may leave."""
        if self._chain is not None:
            self._chain.append(asdict(release))
        self.releases.append(release)

    def knows(self, copy_id: str) -> bool:
        """Whether a line is about this copy."""
        return any(release.copy_id == copy_id for release in self.releases)

    @property
    def count(self) -> int:
        """Releases so far."""
        return len(self.releases)

    def close(self) -> None:
        """Nothing more will be written."""
        if self._chain is not None:
            self._chain.close()


def read_releases(path: Path) -> list[Release]:
    """The releases of a ledger, each checked against the one before."""
    kept = list(read_entries(path, WHAT, LedgerRefused, Release))
    if not all(release.possible for release in kept):
        raise LedgerRefused("a privacy ledger that cannot be read", where=str(path))
    return kept


def total_epsilon(releases: Sequence[Release], delta: float, adjacency: Adjacency) -> float:
    """Of releases that all concern the same row, edge or label."""
    gaussian = [release for release in releases if release.noise_multiplier is not None]
    pure = [release for release in releases if release.epsilon is not None]
    if not pure:
        precision = sum(release.multiplier(adjacency) ** -2 for release in gaussian)
        return epsilon_of(precision**-0.5, delta) if precision else 0.0
    if len(pure) == 1 and not gaussian:
        return pure[0].pure(adjacency)
    return _accounted(gaussian, pure, delta, adjacency)


def _accounted(gaussian: Sequence[Release], pure: Sequence[Release], delta: float, adjacency: Adjacency) -> float:
    """Mixed mechanisms, by the privacy loss distribution of dp-accounting."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    for multiplier, count in Counter(release.multiplier(adjacency) for release in gaussian).items():
        # Our multiplier is relative to the distance of the neighbours; theirs, for replace-one, to half of it.
        accountant.compose(dp_accounting.GaussianDpEvent(2 * multiplier), count)
    for release in pure:  # one by one: dp-accounting 0.6.0 takes a count of randomised responses and ignores it
        k = release.categories or 2
        noise = k / (math.exp(release.pure(adjacency)) + k - 1)
        accountant.compose(dp_accounting.RandomizedResponseDpEvent(noise, k))
    pure_bound = math.inf if gaussian else sum(release.pure(adjacency) for release in pure)
    return min(float(accountant.get_epsilon(delta)), pure_bound)


def of_class(releases: Iterable[Release], name: str) -> list[Release]:
    """Those that hold rows of this class."""
    return [release for release in releases if name in release.classes or ALL in release.classes]


def worst(releases: Iterable[Release], unit: Unit) -> list[Release]:
    """The releases that the most exposed row, edge or label may have been part of.

    In one run the class of rows that was released most; runs add up, because rows may change their class between them.
    """
    runs: dict[str, list[Release]] = {}
    for release in releases:
        if release.unit == unit:
            runs.setdefault(release.run, []).append(release)
    exposed: list[Release] = []
    for of_run in runs.values():
        names = {name for release in of_run for name in release.classes}
        exposed += max((of_class(of_run, name) for name in sorted(names)), key=_weight)
    return exposed


def _weight(releases: Iterable[Release]) -> float:
    return sum(release.multiplier("zero_out") ** -2 + (release.epsilon or 0.0) for release in releases)


def refuse_beyond(
    ledger: Ledger, coming: Sequence[Release], *, budget: float, delta: float, adjacency: Adjacency
) -> None:
    """Stop before releases, all of one unit, that the budget does not cover."""
    release = coming[0]
    after = total_epsilon(worst([*ledger.releases, *coming], release.unit), delta, adjacency)
    if after > budget * (1 + 1e-8):
        raise BudgetSpent(
            f"the privacy budget does not cover the coming release of {release.what}",
            expected=f"at most budget_epsilon = {budget:g} at delta {delta:g}, over all runs in the ledger",
            got=f"{after:.4g} with {len(coming)} more, after {ledger.count} releases",
            where="the privacy ledger" if ledger.path is None else str(ledger.path),
            hint="agree on a larger budget, more noise, or fewer epochs; what is spent stays spent"
            if release.unit == "row"
            else f"agree on a larger budget, or bring the {release.what} that were noised before: these cost nothing",
        )
