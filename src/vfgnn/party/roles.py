"""Makes a role, for processes, simulations, benchmarks and tests alike.

A role's module is loaded when the role is known: a server's process never loads what could read features, a dealer's
nothing of the model.
"""

from importlib import import_module
from typing import Any, Literal

from vfgnn import randomness
from vfgnn.agreement import DEALER, SERVER, Agreement
from vfgnn.channel import Channel
from vfgnn.contribution import Contribution, Own
from vfgnn.errors import ConfigError
from vfgnn.files import PartyFile
from vfgnn.party.device import choose_device
from vfgnn.party.own_code import load_module
from vfgnn.party.own_data import OwnData
from vfgnn.program import ResumableRole

Protocol = Literal["split", "secure_gnn", "sealed"]
ROLES: dict[Protocol, dict[str, str]] = {
    "split": {
        "server": "vfgnn.split.server:Server",
        "dealer": "vfgnn.split.dealer:Dealer",
        "holder": "vfgnn.split.holder:Holder",
        "label holder": "vfgnn.split.label_holder:LabelHolder",
    },
    "secure_gnn": {
        "dealer": "vfgnn.secure_gnn.dealer:MaterialDealer",
        "holder": "vfgnn.secure_gnn.holder:SecureHolder",
        "label holder": "vfgnn.secure_gnn.label_holder:SecureLabelHolder",
    },
    "sealed": {
        "server": "vfgnn.sealed.server:SealedServer",
        "dealer": "vfgnn.sealed.dealer:SealedDealer",
        "holder": "vfgnn.sealed.holder:SealedHolder",
        "label holder": "vfgnn.sealed.label_holder:SealedLabelHolder",
    },
}
AnyRole = ResumableRole[Any]


def make_role(
    agreement: Agreement, channel: Channel, own: Contribution, *, protocol: Protocol | None = None
) -> AnyRole:
    """The role that the party's name gives it, in the protocol of the settings or in another one."""
    made: AnyRole = role_type(agreement, channel.party, protocol)(agreement, channel, own)
    return made


def role_type(agreement: Agreement, name: str, protocol: Protocol | None = None) -> type[Any]:
    """The role's class; its module is loaded."""
    role = name if name in (SERVER, DEALER) else "label holder" if name == agreement.label_holder else "holder"
    module, _, kind = ROLES[protocol or agreement.settings.protocol][role].partition(":")
    made: type[Any] = getattr(import_module(module), kind)
    return made


def contribution_of(
    party: PartyFile,
    agreement: Agreement,
    data: OwnData,
    *,
    run: str,
    **more: Any,  # noqa: ANN401
) -> Contribution:
    """What a party's own files say, for the start or pass named `run`.

    `more`: a holder's fields that no file has (ledger, on_epoch).
    """
    settings, seed, device = agreement.settings, seed_of(party), choose_device(party.device)
    if party.name in (SERVER, DEALER):
        combine = _own_code(party, "combine") if party.name == SERVER and settings.combine == "own" else None
        return Contribution(run=run, seed=seed, device=device, combine=combine)
    if data.holding is None:
        raise ConfigError("a holder without data", expected="[data] holding = ... in party.toml")
    from vfgnn.model.contribution import HolderContribution

    return HolderContribution(
        run=run,
        seed=seed,
        device=device,
        holding=data.holding,
        labels=data.labels,
        gnn=_own_code(party, "gnn") if settings.gnn == "own" else None,
        mechanism=None if party.mechanism is None else load_module(party.mechanism),
        **more,
    )


def seed_of(party: PartyFile) -> bytes:
    """From the operating system, or known to everybody in tests."""
    return randomness.new_seed() if party.insecure_seed is None else known_seed(party.insecure_seed, party.name)


def known_seed(number: int, party: str) -> bytes:
    """What a party of a simulation draws from; nothing is secret with it."""
    return randomness.derive_key(randomness.insecure_seed(number), "party", party)


def _own_code(party: PartyFile, setting: str) -> Own:
    """The user's own class, named in its own party file; a public file never makes anybody run code."""
    if party.module is None:
        raise ConfigError(f'{setting} = "own" needs a module', expected="module = 'package.module:Class' in party.toml")
    return load_module(party.module)
