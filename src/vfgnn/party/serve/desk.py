"""The label holder's desk: questions come in, the last pass's answers are known, and one pass serves all who wait.

Between two threads: the web server's puts questions, the party's takes them. Nothing of it leaves the label holder.

A pass covers all common nodes, so whoever is answered from here costs nothing and shows nothing to anybody. A question
waits only for ids that the last pass did not have, or while there was none.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from vfgnn.errors import VfgnnError
from vfgnn.party.trained import NOT_SHARED, OK, UNKNOWN, Predictions

MOST_WAITING = 1_000_000  # ids, of all questions together
GATHER_S = 0.02  # after the first question that waits, for others to come along
STARTING = "the parties are meeting"


class OutOfService(VfgnnError):
    """There is no answer now; the reason is for whoever asked."""


class Prediction(BaseModel):
    """What is known of one id."""

    model_config = ConfigDict(populate_by_name=True, frozen=True)

    id: Annotated[str, Field(repr=False)]
    status: Annotated[
        Literal["ok", "not at all holders", "unknown"],
        Field(description="ok; in the label holder's table only, or not with all holders; not in its table either"),
    ]
    likeliest: Annotated[
        str | None, Field(alias="class", repr=False, description="The likeliest class; null unless ok.")
    ]
    probability: Annotated[
        dict[str, float] | None,
        Field(repr=False, description="By class, adding up to 1; null unless ok, or where classes alone are opened."),
    ]


class Answers:
    """Those of one pass, by id."""

    def __init__(self, found: Predictions) -> None:
        self.at, self._began = datetime.now(UTC), time.monotonic()
        self._places = {one: place for place, one in enumerate(found.common.to_pylist())}
        self._own = set(found.own.to_pylist())
        self._classes, self.unasked = found.classes, found.unasked  # unasked: a pass would open them
        self._likeliest = found.likeliest.to_pylist()
        self._probability = None if found.classes_only else found.probability.numpy()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def age_s(self) -> float:
        """Since the pass."""
        return time.monotonic() - self._began

    def missing(self, ids: Iterable[str]) -> set[str]:
        """Ids that the pass did not have."""
        return {one for one in ids if one not in self._places}

    def of(self, one: str) -> Prediction:
        """One id's."""
        place = self._places.get(one)
        if place is None:
            status = NOT_SHARED if one in self._own else UNKNOWN
            return Prediction.model_construct(id=one, status=status, likeliest=None, probability=None)
        likeliest, known = self._likeliest[place], self._probability
        probability = None if known is None else dict(zip(self._classes, known[place].tolist(), strict=True))
        return Prediction.model_construct(id=one, status=OK, likeliest=likeliest, probability=probability)


@dataclass(frozen=True)
class Question:
    """Ids, and where the answers of a pass that looked for them will be."""

    ids: tuple[str, ...] = field(repr=False)
    answers: "Future[Answers]" = field(default_factory=Future)


class Desk:
    """Where the two threads meet."""

    def __init__(self, *, max_age_s: float) -> None:
        self.known: Answers | None = None
        self._max_age_s = max_age_s
        self._changed = threading.Condition()
        self._waiting: list[Question] = []
        self._trouble: str | None = STARTING
        self._away: Callable[[], dict[str, str]] = dict
        self.passes, self.pass_seconds, self.failures = 0, 0.0, 0

    # the web server's side

    @property
    def trouble(self) -> str | None:
        """Why nothing is answered now. With a holder away, not even what is known: its consent has left with it."""
        away = [f"{name} is away ({why})" for name, why in self._away().items()]
        known = [] if self._trouble is None or (away and self._trouble == STARTING) else [self._trouble]
        return "; ".join([*known, *away]) or None

    @property
    def away(self) -> list[str]:
        """The parties that are not connected."""
        return list(self._away())

    @property
    def fresh(self) -> bool:
        """Whether what is known may still be told."""
        return self.known is not None and self._fresh(self.known)

    def _fresh(self, known: Answers) -> bool:
        return known.age_s <= self._max_age_s

    def refuse_trouble(self) -> None:
        """Raise why nothing is answered now."""
        trouble = self.trouble
        if trouble is not None:
            raise OutOfService(trouble)

    def at_once(self, ids: Sequence[str]) -> Answers | None:
        """The answers of the last pass, if they are all there is to say."""
        known = self.known
        return known if known is not None and self._fresh(known) and not known.missing(ids) else None

    def put(self, ids: Sequence[str]) -> "Future[Answers]":
        """A question that has to wait."""
        question = Question(tuple(ids))
        with self._changed:
            if sum(len(one.ids) for one in self._waiting) + len(ids) > MOST_WAITING:
                raise OutOfService(f"too many ids are waiting already (at most {MOST_WAITING})")
            self._waiting.append(question)
            self._changed.notify_all()
        return question.answers

    # the party's side

    def meeting(self, away: Callable[[], dict[str, str]]) -> None:
        """The parties try to meet; `away` tells whom this one is not connected with."""
        self._away = away
        self._trouble = self._trouble or STARTING

    def open(self) -> None:
        """All have met, and the first pass since then has gone well."""
        self._trouble = None

    def not_yet(self, reason: str) -> None:
        """All have met, and why there has been no pass since then."""
        self._trouble = reason

    def close(self, reason: str) -> None:
        """A pass failed, or the parties have to meet again."""
        self._trouble, self.failures = reason, self.failures + 1

    def waiting(self, seconds: float) -> set[str]:
        """Wait for questions, and a little longer for more of them; the ids that they ask for."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout=seconds):
                return set()
        time.sleep(GATHER_S)
        with self._changed:
            self._waiting = [question for question in self._waiting if not question.answers.cancelled()]
            return {one for question in self._waiting for one in question.ids}

    def answer(self, known: Answers, ids: set[str], *, seconds: float | None = None) -> None:
        """What there is to say of `ids`, after a pass if it took `seconds`; whoever asked for others waits on."""
        self.known = known
        if seconds is not None:
            self.passes, self.pass_seconds = self.passes + 1, self.pass_seconds + seconds
        with self._changed:
            served = [question for question in self._waiting if ids.issuperset(question.ids)]
            self._waiting = [question for question in self._waiting if not ids.issuperset(question.ids)]
        for question in served:
            if question.answers.set_running_or_notify_cancel():
                question.answers.set_result(known)

    def fail(self, reason: str, ids: set[str] | None = None) -> None:
        """Whoever waits, or waits for one of `ids`, hears why there is no answer."""
        with self._changed:
            failed = [one for one in self._waiting if ids is None or not ids.isdisjoint(one.ids)]
            self._waiting = [one for one in self._waiting if one not in failed]
        for question in failed:
            if question.answers.set_running_or_notify_cancel():
                question.answers.set_exception(OutOfService(reason))
