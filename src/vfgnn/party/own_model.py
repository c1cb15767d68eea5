"""Was the federation worth it? What the label holder's own data gives by itself, with the federation's settings.

Runs at the label holder when a run is over and its peers are gone; nothing leaves. The same nodes train, validate and
test as in the federation. What it reached is noted in run.json beside what the federation reached.
"""

import time

from vfgnn import logs
from vfgnn.agreement import Agreement
from vfgnn.errors import ConfigError, VfgnnError
from vfgnn.files import PartyFile
from vfgnn.party.folder import RunFolder
from vfgnn.party.own_data import OwnData
from vfgnn.party.roles import seed_of
from vfgnn.records import Outcome
from vfgnn.settings import Settings

AS_MAPPED = {"columns": "as they are", "own_degree": False, "scaled": False}
"""The columns of a sealed run are mapped when they are read."""


def note_alone(party: PartyFile, agreement: Agreement, data: OwnData, folder: RunFolder) -> None:
    """Train and note it; a model that cannot be trained alone leaves its reason."""
    if data.labels is None or not party.own_model:
        return
    logs.event("training on own data alone, to compare; the run itself is over, and nothing leaves")
    began = time.perf_counter()
    try:
        reached = train_alone(party, agreement.settings, data)
    except VfgnnError as error:
        folder.note_now(alone={"reason": error.what})
        logs.event("not trained on own data alone", reason=error.what)
        return
    chosen = {key: getattr(reached, key) for key in ("val_accuracy", "test_accuracy", "scores")}
    folder.note_now(alone={**chosen, "seconds": time.perf_counter() - began})
    logs.event("trained on own data alone", test_accuracy=round(reached.test_accuracy, 4))


def train_alone(party: PartyFile, settings: Settings, data: OwnData) -> Outcome:
    """The model of the settings over this holder's own columns and edges."""
    holding, labels = data.holding, data.labels
    if holding is None or labels is None or holding.x.shape[1] == 0:
        raise ConfigError("there are no columns to learn from")
    if settings.protocol == "sealed":
        from vfgnn.model.ridge_training import train_ridge

        own = settings.model_copy(update={"sealed": settings.sealed.model_copy(update=AS_MAPPED)})
        return train_ridge([holding], labels, own)
    if settings.batch_rows is not None:
        raise ConfigError("batch_rows is set, and this comparison trains on all rows at once")
    from vfgnn.model.central import CentralTraining
    from vfgnn.party.own_code import load_module

    gnn = load_module(party.module) if settings.gnn == "own" and party.module is not None else None
    combine = "mean" if settings.combine == "own" else settings.combine  # of one holder: the server has that code
    own = settings.model_copy(update={"combine": combine})
    return CentralTraining(holding, labels, own, seed=seed_of(party), own=gnn).train()
