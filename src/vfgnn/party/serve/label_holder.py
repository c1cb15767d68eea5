"""The label holder under `vfgnn serve`: asks for a pass when its desk has a question that the last one did not answer.

Sees, and lets leave, what it does in a prediction; and lets everyone see when it asks for one. That happens at the
start, whenever the parties have met again, when somebody asks for an id that is in its own table and was not common
before, and when answers have become older than they may be. Ids that its own table does not have never lead to a pass.
Of a sealed model a pass opens those ids alone that wait for it.
"""

import time
from dataclasses import dataclass, field, replace

from vfgnn import logs
from vfgnn.errors import PeerRestarted, VfgnnError
from vfgnn.files import FederationFile, PartyFile
from vfgnn.party.nodes import Nodes
from vfgnn.party.own_data import columns_of, table_of
from vfgnn.party.serve.desk import Answers, Desk
from vfgnn.party.serve.party import AGAIN_S, ServingParty
from vfgnn.party.session import NetworkSession
from vfgnn.transport.network import Network

POLL_S = 0.25
Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Looked:
    """When nodes were last aligned anew, over which own table, and what came of it."""

    stamp: Stamp
    at: float
    going_on: bool
    failed: str | None = None


@dataclass(frozen=True)
class Wanted:
    """A pass that can begin."""

    ids: set[str] = field(repr=False)  # that wait for it
    new_nodes: bool
    stamp: Stamp  # of the own node table, and
    trained: Nodes  # what was read of it


class ServingLabelHolder(ServingParty):
    """A serving party with a desk."""

    def __init__(
        self, file: FederationFile, party: PartyFile, desk: Desk, *, recheck_s: float, log_json: bool = False
    ) -> None:
        super().__init__(file, party, log_json=log_json)
        self.desk, self._recheck_s = desk, recheck_s
        self._extends = self.extends()
        self._extended = False  # whether nodes have been added
        self._due = True  # a pass, before anything is answered: the parties have just met
        self._own_ids: tuple[Stamp, frozenset[str]] | None = None
        self._looked: Looked | None = None

    def _meeting(self, network: Network) -> None:
        self.desk.meeting(lambda: network.away)

    def _met(self) -> None:
        self._due = True

    def _failed(self, error: VfgnnError) -> None:
        self.desk.close(error.what)
        self.desk.fail(error.what)
        looked, restarted = self._looked, isinstance(error, PeerRestarted)
        self._looked = looked if restarted and looked is not None and not looked.going_on else None
        if not restarted:
            self._extended = False  # what fails with new nodes must keep nobody from the others
            if looked is not None and looked.going_on:
                self._looked = replace(looked, going_on=False, failed=error.what)

    def _take_part(self, session: NetworkSession, *, run: str) -> None:
        """Ask for the next pass when one is wanted. Reveals: what `TrainedParty.ask` does, and when."""
        wanted = self._ready(session.network)
        ids, new_nodes, began = wanted.ids, wanted.new_nodes, time.monotonic()
        if new_nodes:
            self._looked = Looked(wanted.stamp, began, going_on=True)
        self._call(session.channel, new_nodes=new_nodes)
        found = self.model.ask(session, wanted.trained, run=run, new_nodes=new_nodes, ids=ids)
        if found is not None:
            self._extended, self._due = new_nodes, False
            self.desk.answer(Answers(found), ids, seconds=time.monotonic() - began)
            self.desk.open()
        if self._looked is not None:
            self._looked = replace(self._looked, going_on=False)
        self._tell_pass(new_nodes, began)

    def _ready(self, network: Network) -> Wanted:
        """Wait until a pass is wanted and this party's own tables can be read: if not, nobody else need hear of it."""
        told = None
        while True:
            ids, new_nodes = self._wanted(network)
            stamp = self._stamp()  # before the table is read: what comes meanwhile is looked for again
            try:
                return Wanted(ids, new_nodes, stamp, self.model.load())
            except VfgnnError as error:
                self.desk.fail(error.what)
                if self._due:
                    self.desk.not_yet(error.what)
                if error.what != told:
                    logs.event("own data cannot be read", reason=error.what)
                told = error.what
                time.sleep(AGAIN_S)

    def _wanted(self, network: Network) -> tuple[set[str], bool]:
        """Wait until a pass is wanted; the ids that wait for it, and whether nodes have to be aligned anew."""
        while True:
            network.refuse_failed()
            if self._due and not network.away:
                return set(), self._extended
            ids, known = self.desk.waiting(POLL_S), self.desk.known
            if self._due or known is None or network.away or not ids:
                continue
            missing = known.missing(ids)
            new = bool(missing & known.unasked) or self._any_new(missing)
            if new or not self.desk.fresh:
                return ids, new or self._extended
            self.desk.answer(known, ids)  # there is no more to be known

    def _any_new(self, ids: set[str]) -> bool:
        """Whether some of these may have become common since nodes were last aligned."""
        if not self._extends or not ids:
            return False
        try:
            stamp = self._stamp()
            here = ids & self._own(stamp)
        except VfgnnError as error:  # its own table, which may be half-written just now
            self.desk.fail(error.what)
            return False
        looked = self._looked
        if looked is None or looked.stamp != stamp or time.monotonic() - looked.at >= self._recheck_s:
            return bool(here)
        if looked.failed is not None:  # what nobody has looked for is not unknown
            self.desk.fail(looked.failed, here)
        return False

    def _stamp(self) -> Stamp:
        """Changes whenever the own node table does."""
        data = self.party.data
        if data is None or data.nodes is None:
            return 0, 0, 0
        try:
            about = data.nodes.stat()
        except OSError:  # whoever reads it says why
            return 0, 0, 0
        return about.st_mtime_ns, about.st_size, about.st_ino

    def _own(self, stamp: Stamp) -> frozenset[str]:
        from vfgnn.data.tables import read_ids

        source = None if self.party.data is None else table_of(self.party.data, "nodes")
        if source is None:
            return frozenset()
        if self._own_ids is None or self._own_ids[0] != stamp:
            self._own_ids = stamp, frozenset(read_ids(source, columns_of(self.party)).to_pylist())
        return self._own_ids[1]
