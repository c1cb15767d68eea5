"""What `vfgnn doctor` says of a sealed training: what it opens to whom, whether this holder lets it, and its data.

Runs at each party, on its own files. Nothing leaves.
"""

import math
from collections.abc import Iterator

from vfgnn.agreement import DEALER
from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.party.finding import Finding
from vfgnn.party.own_data import OwnData
from vfgnn.privacy.openings import read_openings
from vfgnn.sealed.sizes import SealedSizes


def sealed_findings(file: FederationFile, own: PartyFile, data: OwnData) -> Iterator[Finding]:
    """Of this party; `data` has been held against the federation file (own_data.py)."""
    yield _opened(file)
    if own.name == DEALER:
        yield Finding("dealer", "ok", "with any one holder it could open everything: it belongs to nobody who is one")
    if own.name in file.agreement.holder_names:
        yield _edges(file, own.name, data)
        if own.name != file.label_holder:
            yield from _consent(file, own)


def _opened(file: FederationFile) -> Finding:
    """What the protocol shows, and to whom; all parties have agreed on it."""
    agreement = file.agreement
    sealed, leader = agreement.settings.sealed, agreement.label_holder
    scalars = SealedSizes(agreement, 1, 1).scalars
    what = (
        f"to {leader} alone: {sealed.opens} of nodes, the classes of the validation nodes once for each of "
        f"{len(sealed.ridges)} ridges, {scalars} inner products; to the other holders: which nodes train and validate"
    )
    return Finding("what is opened", "ok", what)


def _consent(file: FederationFile, own: PartyFile) -> Iterator[Finding]:
    """Whether this holder would refuse what the label holder asks for (privacy/openings.py)."""
    leader, limits = file.label_holder, file.limits
    if file.settings.sealed.opens == "scores" and own.allow_scores:
        yield Finding("scores", "ok", f"this holder lets them be opened to {leader}")
    elif file.settings.sealed.opens == "scores":
        what = f"they are to be opened to {leader}, and this holder has not agreed"
        yield Finding("scores", "fault", what, "allow_scores = true in party.toml, or sealed.opens = classes at all")
    ledger = read_openings(own.opened_ledger) if own.opened_ledger.is_file() else []
    before = [one for one in ledger if one.label_holder == leader]
    trainings, rows = sum(one.kind == "training" for one in before), sum(one.rows for one in before)
    most = math.inf if limits.max_opened_rows is None else limits.max_opened_rows
    allowed = "any number of rows" if limits.max_opened_rows is None else f"{most:,} rows"
    what = (
        f"{leader} may have {limits.max_trainings} trainings and {allowed} opened in all; "
        f"by the ledger here it has had {trainings} and {rows:,}"
    )
    if trainings >= limits.max_trainings or rows >= most:
        to_do = "another training is refused here: all parties would have to agree on more in [limits]"
        yield Finding("limits", "note", what, to_do)
    else:
        yield Finding("limits", "ok", what)


def _edges(file: FederationFile, name: str, data: OwnData) -> Finding:
    from vfgnn.party.sealed_data import counted_entries, shape_of  # at holders only

    holding = data.everything
    if holding is None:
        raise ConfigError("a holder without data", expected="[data] in party.toml")
    quota, declared = file.agreement.degree_quota, shape_of(file.agreement, name).entry_bound
    counted, there = counted_entries(holding, quota=quota), counted_entries(holding)
    if there > counted:
        what = f"{there - counted} of {there} directed entries are left out: a node counts {quota} edges at each holder"
        return Finding("edges", "note", what, "raise sealed.degree_bits at all parties, or let them be left out")
    return Finding("edges", "ok", f"{counted} directed entries; at most {declared} are declared to the others")
