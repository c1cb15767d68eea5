"""SecureGNN's holders: CG1 as in VFGNN, then the server's part and the output layer together, on shares.

A holder sees, beyond what VFGNN shows it: nothing but uniform words. It does not publish rows, so nobody sees them.
The label holder sees the logits of the rows that are trained, evaluated and predicted; z_L it never sees.
What leaves: masked values and shares, to the other holders.
"""

from collections.abc import Iterator
from typing import Any

import torch

from vfgnn import randomness
from vfgnn.baselines.secure_gnn.network import INPUT_GRADIENT, LOGITS, LOGITS_GRADIENT, VALUES, SharedNetwork
from vfgnn.baselines.secure_gnn.schedule import ServerlessFederation
from vfgnn.channel import Channel
from vfgnn.config import DEALER
from vfgnn.messages import Kind
from vfgnn.model.cg3_labels import OutputLayer
from vfgnn.mpc.shared import Arithmetic, DealtMaterial
from vfgnn.mpc.sharing import reconstruct
from vfgnn.parties.holder import Holder
from vfgnn.parties.label_holder import LabelHolder
from vfgnn.parties.schedule import Step
from vfgnn.randomness import Stream


class ChannelOpening:
    """Opens values among the holders: each sends its share to all others, then hears theirs."""

    def __init__(self, channel: Channel, others: list[str]) -> None:
        self._channel, self._others = channel, others

    def open(self, *shares: torch.Tensor) -> list[torch.Tensor]:
        """Reveals: the sums, to all holders. Whoever calls this has masked them."""
        for share in shares:
            for other in self._others:
                self._channel.send(other, Kind.MASKED_SHARE, share)
        heard = [[self._channel.receive(other, Kind.MASKED_SHARE) for other in self._others] for _ in shares]
        return [reconstruct([share, *theirs]) for share, theirs in zip(shares, heard, strict=True)]


class PairSeeds:
    """Shares without messages: what i shares is uniform at all others, from a seed that i has given to each."""

    def __init__(self, federation: ServerlessFederation, channel: Channel, seed: bytes) -> None:
        self._channel, self._me, self._count = channel, channel.party, 0
        self._others = [name for name in federation.holder_names if name != self._me]
        self._given = {
            name: randomness.derive_key(seed, "sharing", federation.run, self._me, name) for name in self._others
        }
        self._got: dict[str, bytes] = {}

    def exchange(self) -> None:
        """Reveals: to each other holder, the seed of its shares of what this one will share."""
        for name, seed in self._given.items():
            self._channel.send(name, Kind.SHARING_SEED, torch.tensor(list(seed), dtype=torch.uint8))
        self._got = {name: bytes(self._channel.receive(name, Kind.SHARING_SEED).tolist()) for name in self._others}

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
    """A holder whose rows go on as shares in the place of being published."""

    federation: ServerlessFederation

    def __init__(
        self,
        federation: ServerlessFederation,
        channel: Channel,
        *args: Any,  # noqa: ANN401 (as a holder or as the label holder)
        seed: bytes,
        **more: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(federation, channel, *args, seed=seed, **more)
        me = channel.party
        others = [name for name in federation.holder_names if name != me]
        self._opening = ChannelOpening(channel, others)
        self._seeds = PairSeeds(federation, channel, seed)
        self._arithmetic: Arithmetic | None = None
        self._dropout = randomness.derive_key(seed, "dropout", federation.run)
        self._passes = 0
        self.network = SharedNetwork(
            federation.widths,
            holders=len(federation.holders),
            seed=seed,
            step=federation.step,
        )
        self._best_shares: list[torch.Tensor] = []
        self._trained = 0  # so many rows of the last pass came first, with dropout

    def set_up(self) -> None:
        """Agree on dropout, get seeds from the dealer and the other holders, then as in VFGNN.

        Reveals: to the other holders, the seeds of their shares; H_0.
        """
        self._agree()
        me, federation = self.channel.party, self.federation
        seed = bytes(self.channel.receive(DEALER, Kind.MATERIAL_SEED).tolist())
        correct = (
            (lambda: self.channel.receive(DEALER, Kind.MATERIAL_CORRECTION)) if me == federation.corrected else None
        )
        material = DealtMaterial(seed, run=federation.run, holder=me, next_correction=correct)
        self._arithmetic = Arithmetic(self._opening, material, leads=me == federation.label_holder)
        self._seeds.exchange()
        super().set_up()

    def _agree(self) -> None:
        self._dropout = bytes(self.channel.receive(self.federation.label_holder, Kind.DROPOUT_SEED).tolist())

    @property
    def _on_shares(self) -> Arithmetic:
        if self._arithmetic is None:
            raise RuntimeError("set_up() comes first")
        return self._arithmetic

    def _publish(self, rows: torch.Tensor, step: Step | None) -> None:
        """Combine and hidden layers on shares. Reveals: the logits of the step's rows to the label holder."""
        self._trained = 0 if step is None or step.last else self.rows.train_count
        batch = rows
        if step is not None:
            evaluated = [rows[len(rows) - self.rows.val_count :]] if step.evaluates else []
            batch = torch.cat([rows[: self._trained], *evaluated])
        combined = self._combined(VALUES.encode(self._scaled(batch), "local embeddings"))
        logits = self.network.forward(self._on_shares, combined, list(self._keeps(len(batch))))
        self._hand_in(logits)

    def _scaled(self, rows: torch.Tensor) -> torch.Tensor:
        return rows / len(self.federation.holders) if self.federation.settings.combine == "mean" else rows

    def _combined(self, own_ring: torch.Tensor) -> torch.Tensor:
        """A share of the combined rows: all share theirs; a mean is their sum, and each has divided already."""
        me, shape = self.channel.party, tuple(own_ring.shape)
        shares = [
            self._seeds.share(own_ring) if name == me else self._seeds.receive(name, shape)
            for name in self.federation.holder_names
        ]
        self._seeds.next()
        return torch.cat(shares, dim=1) if self.federation.settings.combine == "concat" else reconstruct(shares)

    def _keeps(self, rows: int) -> Iterator[torch.Tensor]:
        """Dropout for the rows that train, as whole numbers; the same at all holders, for they add up shares."""
        factor, trained = int(self.federation.dropout_factor), self._trained
        stream = Stream(self._dropout, self.federation.run, "dropout", self._passes)
        self._passes += 1
        for width in self.federation.widths[:-1]:
            kept = torch.ones(rows, width, dtype=torch.int64)
            kept[:trained] = factor * (stream.words(trained, width) % factor == 0)
            yield kept

    def _hand_in(self, logits_share: torch.Tensor) -> None:
        """Fresh from a product with the dealer's material, so all shares but one are uniform: only their sum shows.

        Reveals: the logits to the label holder.
        """
        self.channel.send(self.federation.label_holder, Kind.LOGITS_SHARE, logits_share)

    def _gradient(self) -> torch.Tensor:
        """Reveals: to each holder, the gradient of its own rows (shares fresh from a product, as the logits')."""
        federation, me, dim = self.federation, self.channel.party, self.federation.settings.dim
        share = self.network.backward(self._on_shares, self._shared_gradient())
        wide = federation.settings.combine == "concat"
        parts = dict(zip(federation.holder_names, torch.split(share, dim, dim=1), strict=True)) if wide else {}
        for name in federation.holder_names:
            if name != me:
                self.channel.send(name, Kind.GRADIENT_SHARE, parts[name].contiguous() if wide else share)
        others = [self.channel.receive(name, Kind.GRADIENT_SHARE) for name in federation.holder_names if name != me]
        total = reconstruct([parts[me] if wide else share, *others])
        return self._scaled(INPUT_GRADIENT.decode(total)).to(federation.settings.dtype)

    def _shared_gradient(self) -> torch.Tensor:
        """A share of dL/dlogits of the training rows."""
        shape = (self.rows.train_count, self.federation.classes)
        share = self._seeds.receive(self.federation.label_holder, shape)
        self._seeds.next()
        return share

    def keep_best(self) -> None:
        """Remember its shares of the layers too."""
        super().keep_best()
        self._best_shares = self.network.values()

    def restore_best(self) -> None:
        """Go back to them."""
        super().restore_best()
        self.network.restore(self._best_shares)


class OpenedLogits(OutputLayer):
    """In the place of the output layer: the logits have come already."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """The logits, as they were opened."""
        return z


class SecureLabelHolder(SecureHolder, LabelHolder):
    """The label holder: the only one that sees logits."""

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **more)
        self._logits: torch.Tensor | None = None
        self._logits_gradient: torch.Tensor | None = None

    def _make_output(self) -> OutputLayer:
        return OpenedLogits()

    def _agree(self) -> None:
        """Reveals: to the other holders, what dropout keeps; to the dealer, how many rows train and validate."""
        federation = self.federation
        if federation.settings.publish == "needed":
            counts = torch.tensor([len(self._labels.train), len(self._labels.val)])
            self.channel.send(DEALER, Kind.ROW_COUNTS, counts)
        for name in federation.row_readers:
            self.channel.send(name, Kind.DROPOUT_SEED, torch.tensor(list(self._dropout), dtype=torch.uint8))

    def _hand_in(self, logits_share: torch.Tensor) -> None:
        """Nothing leaves: the others' shares come here."""
        readers = self.federation.row_readers
        shares = [logits_share, *(self.channel.receive(name, Kind.LOGITS_SHARE) for name in readers)]
        self._logits = LOGITS.decode(reconstruct(shares)).to(self.federation.settings.dtype)

    def _opened(self) -> torch.Tensor:
        if self._logits is None:
            raise RuntimeError("no logits have come yet")
        return self._logits

    def _hidden(self) -> torch.Tensor:
        """Logits of the training rows."""
        return self._opened()[: self._trained]

    def _hidden_evaluated(self) -> torch.Tensor:
        """Logits of the rows that are evaluated or predicted."""
        return self._opened()[self._trained :]

    def _return_gradient(self, gradient: torch.Tensor) -> None:
        """Nothing leaves yet: it is shared from seeds."""
        self._logits_gradient = gradient

    def _shared_gradient(self) -> torch.Tensor:
        """Reveals: nothing; the others' shares are uniform, and this one stays."""
        if self._logits_gradient is None:
            raise RuntimeError("the loss comes first")
        share = self._seeds.share(LOGITS_GRADIENT.encode(self._logits_gradient, "the gradient of the logits"))
        self._seeds.next()
        return share
