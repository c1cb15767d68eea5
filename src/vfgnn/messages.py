"""The kinds of message there are, and the declaration that each one is held against.

Nobody can send or receive anything that is not declared: kind, sender, receiver, dtype and shape are all known at
both ends before a byte moves (`parties/schedule.py` makes the declarations, `channel.py` enforces them).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import torch

WORD = torch.int64
"""Of the joint layer's messages: words of the ring Z_2^64."""

SEED = (torch.uint8, (32,))
"""Type and shape of a seed."""


class Kind(StrEnum):
    """What a message carries, from whom to whom, and therefore what the receiver sees."""

    ALIGNMENT_KEY = "alignment_key"
    """Label holder -> other holders: the key under which ids become tokens. Never to the server."""
    ID_COUNT = "id_count"
    """Holder -> whoever matches (the server, or the other holder): how many ids it has."""
    TOKENS = "tokens"
    """Holder -> server: one keyed token per id, sorted; the server cannot turn them back into ids."""
    COMMON_COUNT = "common_count"
    """Whoever matched -> holder: how many ids all holders have."""
    COMMON_POSITIONS = "common_positions"
    """Server -> holder: where in that holder's sorted tokens the common ones are."""
    PSI_SIZE = "psi_size"
    """Holder -> other holder: how many bytes the coming PSI message has."""
    PSI_REQUEST = "psi_request"
    """Holder -> other holder: its ids, encrypted under a key of its own."""
    PSI_SETUP = "psi_setup"
    """Holder -> other holder: its ids, encrypted under a key of its own, in sorted order."""
    PSI_RESPONSE = "psi_response"
    """Holder -> other holder: the request, encrypted once more."""
    COMMON_TOKENS = "common_tokens"
    """Holder -> other holder: keyed tokens of the common ids, by which the other finds them among its own."""
    ORDER_DIGEST = "order_digest"
    """Holder -> label holder: a keyed digest of the common ids in their order; all must be the same."""
    NODE_COUNT = "node_count"
    """Label holder -> everyone: the order is the same at all holders, and this is how many nodes there are."""
    ROW_ROLES = "row_roles"
    """Label holder -> server and publishing holders: which rows train, which validate. Never a label."""
    PAIR_COUNT = "pair_count"
    """Holder -> other publishing holders: how many pairs its noised edge list has."""
    NOISED_EDGES = "noised_edges"
    """Holder -> other publishing holders: its edges after randomised response, one number per pair."""
    DEALER_SEED = "dealer_seed"
    """Dealer -> holder: the seed of the masks that only these two can expand."""
    PAIR_SEED = "pair_seed"
    """Holder -> holder: the seed of their part of the sharings of zero (three or more holders)."""
    MASKED_FEATURES = "masked_features"
    """Holder k -> other holders: E_k = X_k - U_k, uniform to them."""
    CORRECTION_FORWARD = "correction_forward"
    """Dealer -> holder j: sum over k of U_k V - Z, uniform to j."""
    CORRECTION_BACKWARD = "correction_backward"
    """Dealer -> holder i: U_k^T V - Z of all k, uniform to i."""
    JOINT_WEIGHTS = "joint_weights"
    """Holder j -> holder k: j's share of W_k minus its mask V, uniform to k (in `insecure_clear`: without mask)."""
    JOINT_UPDATE = "joint_update"
    """Holder i -> holder k: Q_i minus its mask V, uniform to k (in `insecure_clear`: without mask)."""
    JOINT_PRODUCT = "joint_product"
    """Holder j -> holder k: j's share of P_k = X_k^T Q minus its mask V, uniform to k (not in `insecure_clear`)."""
    H0_SHARE = "h0_share"
    """Holder -> each holder with edges: its additive share of h0. The sum of all shares is the reveal."""
    LOCAL_EMBEDDINGS = "local_embeddings"
    """Holder -> server: its published rows h_local (noised with `row_epsilon`)."""
    HIDDEN = "hidden"
    """Server -> label holder: z_L of the training rows, with dropout."""
    HIDDEN_EVALUATED = "hidden_evaluated"
    """Server -> label holder: z_L of validation or predicted rows, without dropout."""
    CONTROL = "control"
    """Label holder -> everyone: whether this epoch is the best so far, and whether to stop."""
    DONE = "done"
    """Everyone -> label holder: the final state is on this party's disk."""
    END = "end"
    """Label holder -> everyone: it is on everybody's disk, and nobody is needed any more."""
    PASS = "pass"  # noqa: S105 (no password)
    """Label holder -> everyone (`vfgnn serve`): one more pass is wanted, and whether nodes are to be aligned anew."""
    HIDDEN_GRADIENT = "hidden_gradient"
    """Label holder -> server: dL/dz_L of the training rows (noised with `gradient_epsilon`)."""
    LOCAL_GRADIENT = "local_gradient"
    """Server -> holder: the gradient of that holder's own published rows."""

    # Of the baseline SecureGNN only (baselines/secure_gnn), which has no server.
    ROW_COUNTS = "row_counts"
    """Label holder -> dealer: how many rows train and how many validate."""
    DROPOUT_SEED = "dropout_seed"
    """Label holder -> other holders: the seed of dropout, which is public among them."""
    MATERIAL_SEED = "material_seed"
    """Dealer -> holder: the seed of that holder's shares of all masks and their products."""
    MATERIAL_CORRECTION = "material_correction"
    """Dealer -> last holder: its share of what follows from the masks of one operation, uniform to it."""
    SHARING_SEED = "sharing_seed"
    """Holder -> other holder: the seed of the receiver's shares of what the sender shares."""
    MASKED_SHARE = "masked_share"
    """Holder -> other holders: its share of a masked value; the sum is uniform to all of them."""
    LOGITS_SHARE = "logits_share"
    """Holder -> label holder: its share of the logits. The sum of all shares is what the label holder sees."""
    GRADIENT_SHARE = "gradient_share"
    """Holder -> each other holder: its share of the gradient of the receiver's own rows."""


@dataclass(frozen=True)
class Declared:
    """One message that may, and must, be sent."""

    kind: Kind
    sender: str
    receiver: str
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Payload size on the link."""
        size = self.dtype.itemsize
        for length in self.shape:
            size *= length
        return size

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"{self.kind} {self.sender}->{self.receiver} {str(self.dtype).removeprefix('torch.')}[{shape}]"


def total_bytes(messages: Iterable[Declared]) -> int:
    """Payload bytes of all links together."""
    return sum(message.bytes for message in messages)
