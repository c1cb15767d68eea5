"""What a party notes of a sealed training in its run.json: what was opened, to whom, and what crossed its links.

Holders and dealer know the public sizes that all of it follows from; a server that aligned ids does not.
"""

from vfgnn.agreement import SERVER, Agreement
from vfgnn.party.folder import RunFolder
from vfgnn.party.roles import AnyRole
from vfgnn.records import Traffic


def note_opened(role: AnyRole, folder: RunFolder) -> None:
    """When the training has been gone through, before the final state is kept: that says how many rows no more."""
    if not role.agreement.sealed or role.channel.party == SERVER:
        return
    from vfgnn.sealed.record import opened_by
    from vfgnn.sealed.rehearsal import script
    from vfgnn.sealed.sizes import SealedSizes

    sizes = SealedSizes(role.agreement, role.known.train, role.known.val)
    folder.note_now(opened=opened_by(sizes).to_json(), rounds=script(sizes).rounds)


def note_bytes(agreement: Agreement, name: str, folder: RunFolder, traffic: Traffic) -> None:
    """Of this party's links, both directions, in all starts of the run; `traffic`: of this process."""
    if not agreement.sealed or name == SERVER:
        return
    from vfgnn.sealed.record import sent_by_part

    folder.note("bytes", sent_by_part(folder.traffic(traffic)))
