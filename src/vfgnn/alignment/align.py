"""Which nodes the holders share, and in which common order: what every party does before anything else is sent."""

import pyarrow as pa

from vfgnn.agreement import SERVER
from vfgnn.alignment.dealer import AligningDealer
from vfgnn.alignment.holder import AligningHolder
from vfgnn.alignment.order import Aligned
from vfgnn.alignment.program import PSI, AlignmentPlan, aligning
from vfgnn.alignment.server import AligningServer
from vfgnn.channel import Channel
from vfgnn.program import carry_out


def align(channel: Channel, plan: AlignmentPlan, ids: pa.Array | None = None, *, key: bytes | None = None) -> Aligned:
    """One party's part, from the opening to the common order; `ids` at holders, a `key` at the label holder in tests.

    Reveals: how many ids a holder has, and which are common (tokens.py and psi.py: to whom).
    """
    role: AligningHolder | AligningServer | AligningDealer
    if ids is not None:
        role = AligningHolder(channel, plan, ids, key)
    elif channel.party == SERVER and plan.method != PSI:
        role = AligningServer(channel, plan)
    else:
        role = AligningDealer(channel, plan)
    carry_out(aligning(plan), role)
    return role.aligned
