"""Whatever `make fuzz` found once: each case of tests/corpus is accepted, or refused with a name of ours."""

import pytest

from tests.fuzz import files, frames, records
from tests.fuzz.attacked import Victim
from tests.fuzz.case import CORPUS, Case, Outcome, from_json, read_case, to_json, write_case
from tests.fuzz.ground import Ground
from tests.fuzz.targets import TARGETS, make_case, run_case


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    """One federation for all cases."""
    made = Victim(Ground(tmp_path_factory.mktemp("corpus")))
    yield made
    made.close()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_a_case_that_failed_once_does_not_fail_again(path, victim):
    outcome = run_case(read_case(path), victim.ground, victim.ask)
    assert not outcome.failed, f"{outcome.signature}: {outcome.said}"


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (Case("files", "home", ()), "accepted"),
        (Case("files", "home", (("federation.toml", b"\xff"),)), "refused"),
        (Case("records", "page", ()), "accepted"),
        (Case("frames", "link", (("text", b"{"),)), "refused"),
        (Case("frames", "party", (("text", b"{"),)), "refused"),
    ],
    ids=lambda value: getattr(value, "way", value),
)
def test_good_cases_are_accepted_and_bad_ones_refused(case, verdict, victim):
    """Else the corpus would prove nothing."""
    assert run_case(case, victim.ground, victim.ask).verdict == verdict


def test_a_fault_is_found(victim, monkeypatch):
    """Where a reader lets an error through that has no name, the case fails, and its signature says where."""

    def broken(folder, ground):
        raise KeyError("rows")

    monkeypatch.setitem(files.READERS, "alignment", broken)
    outcome = run_case(Case("files", "alignment", ()), victim.ground, victim.ask)
    assert outcome.failed and outcome.signature == "files alignment: KeyError"


def test_a_page_with_script_is_found(victim, monkeypatch):
    monkeypatch.setattr(records, "make_page", lambda folders: "<p><img src=x onerror=alert(1)></p>")
    assert "an event attribute" in run_case(Case("records", "page", ()), victim.ground, victim.ask).signature


def test_a_kept_case_comes_back_without_the_names_of_its_federation(victim, tmp_path):
    hello = frames.good_hello(victim.ground).encode()
    portable = victim.ground.portable(hello)
    assert b"BEGIN" not in portable
    assert victim.ground.here(portable) == hello
    case = Case("hellos", "endpoint", (("text", portable), ("binary", b"\xff\x00"), ("gone", None)))
    path = write_case(case, Outcome("unnamed", "", "hellos endpoint: KeyError"), tmp_path)
    assert read_case(path) == case
    assert from_json(to_json(case)) == case


def test_the_same_seed_makes_the_same_cases(victim):
    for target in TARGETS:
        one, other = (make_case(target, 7, 900, victim.ground) for _ in range(2))
        assert one.way == other.way
        if target not in ("strangers", "hellos"):  # a TLS client has random bytes of its own, a hello has a clock
            assert one == other
