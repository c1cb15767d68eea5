"""What `vfgnn doctor` says of a sealed training: what it opens to whom, and whether this holder's data fits it.

Runs at each party, on its own files. Nothing leaves.
"""

from collections.abc import Iterator

from vfgnn.agreement import DEALER
from vfgnn.errors import ConfigError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.party.finding import Finding
from vfgnn.party.own_data import OwnData
from vfgnn.sealed.sizes import SealedSizes


def sealed_findings(file: FederationFile, own: PartyFile, data: OwnData) -> Iterator[Finding]:
    """Of this party; `data` has been held against the federation file (own_data.py)."""
    yield _opened(file)
    if own.name == DEALER:
        yield Finding("dealer", "ok", "with any one holder it could open everything: it belongs to nobody who is one")
    if own.name in file.agreement.holder_names:
        yield _edges(file, own.name, data)


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
