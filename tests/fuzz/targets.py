"""All targets, and one way to run a case of any of them: the same in a campaign, in a replay and in the corpus test."""

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz import files, frames, hellos, records, strangers
from tests.fuzz.attacked import Dead
from tests.fuzz.case import HUNG, UNNAMED, Case, Outcome, judge, to_json
from tests.fuzz.ground import Ground

TARGETS = {target.NAME: target for target in (frames, hellos, strangers, files, records)}
LIVE: dict[str, tuple[str, ...]] = {
    frames.NAME: (frames.PARTY, frames.CHANNEL),
    hellos.NAME: (hellos.ASKED, hellos.RUNNING),
    strangers.NAME: strangers.WAYS,
}
"""The ways that go over TLS to a live party."""
Ask = Callable[..., Any]


def make_case(target: str, seed: int, number: int, ground: Ground) -> Case:
    """Case `number` of a target, the same for the same seed but for keys and addresses."""
    return TARGETS[target].make(random.Random(f"{seed} {target} {number}"), number, ground)


def is_live(case: Case) -> bool:
    return case.way in LIVE.get(case.target, ())


def run_case(case: Case, ground: Ground, ask: Ask) -> Outcome:
    """What became of a case; a process that dies or gives no answer is a failure like any other."""
    try:
        if not is_live(case):
            return Outcome(**ask(do="inside", case=to_json(case)))
        outcome: Outcome = TARGETS[case.target].run_live(case, ground, ask)
        faults = ask(do="faults")
    except Dead as dead:
        return Outcome(HUNG if dead.hung else UNNAMED, str(dead), f"{case.target} {case.way}: {dead}")
    except Exception as error:  # noqa: BLE001 (an hour of attack does not end with an error of the attacker: it is shown)
        return judge(error, case)
    if faults and outcome.verdict != HUNG:
        return Outcome(UNNAMED, faults[0], f"{case.target} {case.way}: {faults[0]}")
    return outcome
