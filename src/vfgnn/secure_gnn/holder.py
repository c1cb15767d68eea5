"""SecureGNN's holders: CG1 as in VFGNN, then the server's part and the output layer together, on shares.

A holder sees, beyond what VFGNN shows it: nothing but uniform words. It does not publish rows, so nobody sees them.
The label holder sees the logits of the rows that are trained, evaluated and predicted; z_L it never sees.
What leaves: masked values and shares, to the other holders.
"""

from collections.abc import Iterator

import torch

from vfgnn import randomness
from vfgnn.agreement import DEALER
from vfgnn.channel import Channel
from vfgnn.model.contribution import HolderContribution
from vfgnn.mpc.material import DealtMaterial
from vfgnn.mpc.opening import ChannelOpening
from vfgnn.mpc.shared import Arithmetic
from vfgnn.mpc.sharing import reconstruct, reveal
from vfgnn.randomness import Stream
from vfgnn.secure_gnn.network import INPUT_GRADIENT, VALUES, SharedNetwork
from vfgnn.secure_gnn.program import (
    DROPOUT_SEED,
    GRADIENT_SHARE,
    LOGITS_SHARE,
    MATERIAL_CORRECTION,
    MATERIAL_SEED,
    SHARING_SEED,
    ServerlessAgreement,
    names_of,
)
from vfgnn.split.holder import Holder
from vfgnn.split.steps import Moment


class PairSeeds:
    """Shares without messages: what i shares is uniform at all others, from a seed that i has given to each."""

    def __init__(self, agreement: ServerlessAgreement, channel: Channel, run: str, seed: bytes) -> None:
        self._channel, self._me, self._count = channel, channel.party, 0
        self._others = [name for name in agreement.holder_names if name != self._me]
        self._given = {name: randomness.derive_key(seed, "sharing", run, self._me, name) for name in self._others}
        self._got: dict[str, bytes] = {}

    def exchange(self) -> None:
        """Reveals: to each other holder, the seed of its shares of what this one will share."""
        for name, seed in self._given.items():
            self._channel.send(name, SHARING_SEED, torch.tensor(list(seed), dtype=torch.uint8))
        self._got = {name: bytes(self._channel.receive(name, SHARING_SEED).tolist()) for name in self._others}

    def share(self, own: torch.Tensor) -> torch.Tensor:
        """This holder's share of its own secret; the others call `receive`."""
        return own - reconstruct([self._words(self._given[name], self._me, own.shape) for name in self._others])

    def receive(self, owner: str, shape: tuple[int, ...]) -> torch.Tensor:
        """This holder's share of a secret of `owner`."""
        return self._words(self._got[owner], owner, shape)

    def _words(self, seed: bytes, owner: str, shape: tuple[int, ...] | torch.Size) -> torch.Tensor:
        return Stream(seed, owner, self._count).words(*shape)

    def next(self) -> None:
        """Whatever is shared from here on is shared under fresh words."""
        self._count += 1


class SecureHolder(Holder):
    """A holder whose rows go on as shares in the place of being published.

    It cannot be resumed: its shares of the layers are not part of its state.
    """

    agreement: ServerlessAgreement

    def __init__(self, agreement: ServerlessAgreement, channel: Channel, own: HolderContribution) -> None:
        super().__init__(agreement, channel, own)
        self._opening = ChannelOpening(channel, names_of(agreement))
        self._seeds = PairSeeds(agreement, channel, own.run, own.seed)
        self._run = own.run
        self._arithmetic: Arithmetic | None = None
        self._dropout = randomness.derive_key(own.seed, "dropout", own.run)
        self._passes = 0
        self.network = SharedNetwork(
            agreement.widths,
            holders=len(agreement.holders),
            seed=own.seed,
            step=agreement.step,
            scales=agreement.scales,
        )
        self._best_shares: list[torch.Tensor] = []
        self._trained = 0  # so many rows of the last pass came first, with dropout

    def set_up(self, moment: Moment) -> None:
        """Agree on dropout, get seeds from the dealer and the other holders, then as in VFGNN.

        Reveals: to the other holders, the seeds of their shares; H_0.
        """
        self._agree()
        me, agreement = self.channel.party, self.agreement
        seed = bytes(self.channel.receive(DEALER, MATERIAL_SEED).tolist())
        correct = (lambda: self.channel.receive(DEALER, MATERIAL_CORRECTION)) if me == agreement.corrected else None
        material = DealtMaterial(seed, run=self._run, holder=me, next_correction=correct)
        self._arithmetic = Arithmetic(self._opening, material, leads=me == agreement.label_holder)
        self._seeds.exchange()
        super().set_up(moment)

    def _agree(self) -> None:
        self._dropout = bytes(self.channel.receive(self.agreement.label_holder, DROPOUT_SEED).tolist())

    @property
    def _on_shares(self) -> Arithmetic:
        if self._arithmetic is None:
            raise RuntimeError("set_up() comes first")
        return self._arithmetic

    def _publish(self, rows: torch.Tensor, moment: Moment | None) -> None:
        """Combine and hidden layers on shares. Reveals: the logits of the moment's rows to the label holder."""
        self._trained = 0 if moment is None or moment.step.last else moment.rows.train_count
        batch = rows
        if moment is not None:
            evaluated = [rows[len(rows) - moment.rows.val_count :]] if moment.step.evaluates else []
            batch = torch.cat([rows[: self._trained], *evaluated])
        combined = self._combined(VALUES.encode(self._scaled(batch), "local embeddings"))
        logits = self.network.forward(self._on_shares, combined, list(self._keeps(len(batch))))
        self._hand_in(logits)

    def _scaled(self, rows: torch.Tensor) -> torch.Tensor:
        scaled = rows * self.agreement.settings.row_scale
        return scaled / len(self.agreement.holders) if self.agreement.settings.combine == "mean" else scaled

    def _combined(self, own_ring: torch.Tensor) -> torch.Tensor:
        """A share of the combined rows: all share theirs; a mean is their sum, and each has divided already."""
        me, shape = self.channel.party, tuple(own_ring.shape)
        shares = [
            self._seeds.share(own_ring) if name == me else self._seeds.receive(name, shape)
            for name in self.agreement.holder_names
        ]
        self._seeds.next()
        return torch.cat(shares, dim=1) if self.agreement.settings.combine == "concat" else reconstruct(shares)

    def _keeps(self, rows: int) -> Iterator[torch.Tensor]:
        """Dropout for the rows that train, as whole numbers; the same at all holders, for they add up shares."""
        factor, trained = int(self.agreement.dropout_factor), self._trained
        stream = Stream(self._dropout, self._run, "dropout", self._passes)
        self._passes += 1
        for width in self.agreement.widths[:-1]:
            kept = torch.ones(rows, width, dtype=torch.int64)
            kept[:trained] = factor * (stream.words(trained, width) % factor == 0)
            yield kept

    def _hand_in(self, logits_share: torch.Tensor) -> list[torch.Tensor]:
        """Fresh from a product with the dealer's material, so all shares but one are uniform: only their sum shows.

        Reveals: the logits to the label holder.
        """
        agreement = self.agreement
        to = (agreement.label_holder,)
        return reveal(self.channel, logits_share, holders=agreement.holder_names, to=to, name=LOGITS_SHARE)

    def _gradient(self, moment: Moment) -> torch.Tensor:
        """Reveals: to each holder, the gradient of its own rows (shares fresh from a product, as the logits')."""
        holders, me, dim = self.agreement.holder_names, self.channel.party, self.agreement.settings.dim
        share = self.network.backward(self._on_shares, self._shared_gradient(moment))
        wide = self.agreement.settings.combine == "concat"
        split = torch.split(share, dim, dim=1) if wide else [share] * len(holders)
        parts = dict(zip(holders, split, strict=True))
        opened: list[torch.Tensor] = []
        for name in (*(name for name in holders if name != me), me):  # its own last: by then all others' are under way
            part = parts[name].contiguous()
            opened = reveal(self.channel, part, holders=holders, to=(name,), name=GRADIENT_SHARE)
        return self._scaled(INPUT_GRADIENT.decode(opened[0])).to(self.agreement.settings.dtype)

    def _shared_gradient(self, moment: Moment) -> torch.Tensor:
        """A share of dL/dlogits of the training rows."""
        shape = (moment.rows.train_count, self.agreement.classes)
        share = self._seeds.receive(self.agreement.label_holder, shape)
        self._seeds.next()
        return share

    def keep_best(self) -> None:
        """Remember its shares of the layers too."""
        super().keep_best()
        self._best_shares = self.network.values()

    def restore_best(self, moment: Moment) -> None:
        """Go back to them."""
        super().restore_best(moment)
        self.network.restore(self._best_shares)
