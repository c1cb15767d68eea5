"""A label holder's command whose program was changed: it looks at no limit of its own, and asks for what it had before.

    python greedy.py RUN python -m vfgnn run ...

RUN: a run that it names as a new one; `-`: none. It also asks for the prediction of every row that it has a copy of.
"""

import sys

import torch

from vfgnn.cli.main import main
from vfgnn.party.accounts import Accounts
from vfgnn.privacy.openings import Account
from vfgnn.sealed.label_holder import SealedLabelHolder
from vfgnn.sealed.state import OpenedRows
from vfgnn.transport.network import Network
from vfgnn.transport.wire import Start

named = sys.argv[1]
learn_asked, decide = SealedLabelHolder._learn_asked, Network._decide


def ask_for_everything(self):
    self._left = type(self._left)(**{**vars(self._left), "opened": OpenedRows(torch.arange(0), torch.empty((0, 1)))})
    learn_asked(self)


def name_it(self):
    start = decide(self)
    return Start(run=start.run if named == "-" else named, start=start.start, step=start.step, protocol=start.protocol)


SealedLabelHolder._learn_asked, Network._decide = ask_for_everything, name_it
Account.expect = Account.charge = lambda *arguments, **keywords: None
Accounts.account = lambda *arguments, **keywords: None
sys.argv = ["vfgnn", *sys.argv[5:]]
main()
