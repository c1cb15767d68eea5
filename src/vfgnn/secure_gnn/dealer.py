"""SecureGNN's dealer: hands out the joint layer's masks, as VFGNN's does, and what the layers on shares need.

Sees: sizes, how many rows train and validate, its own random numbers, `keep` and `stop`. What leaves: to each holder
seeds, and to one of them a correction per operation.
"""

from collections.abc import Iterator
from concurrent.futures import Future

import torch

from vfgnn import randomness
from vfgnn.channel import Channel
from vfgnn.contribution import Contribution
from vfgnn.mpc.material import Corrections
from vfgnn.mpc.shared import Operation
from vfgnn.rows import RowSet
from vfgnn.secure_gnn.network import backward_operations, forward_operations
from vfgnn.secure_gnn.program import (
    MATERIAL_CORRECTION,
    MATERIAL_SEED,
    ROW_COUNTS,
    ServerlessAgreement,
    batch_size,
)
from vfgnn.split.dealer import Dealer
from vfgnn.split.steps import Moment, Rows, Step, steps


class MaterialDealer(Dealer):
    """Computes the corrections of the next pass while the holders work on this one."""

    agreement: ServerlessAgreement

    def __init__(self, agreement: ServerlessAgreement, channel: Channel, own: Contribution) -> None:
        super().__init__(agreement, channel, own)
        names = agreement.holder_names
        self._material = {name: randomness.derive_key(own.seed, "material", own.run, name) for name in names}
        self._corrections = Corrections(self._material, run=own.run)
        self._ahead: list[Future[list[torch.Tensor]]] = []
        self._steps = {step.number: step for step in steps(agreement)}

    def set_up(self, moment: Moment) -> None:
        """How many rows there are, then seeds.

        Reveals: to each holder, randomness that only it and the dealer can expand.
        """
        agreement = self.agreement
        if agreement.settings.publish == "needed":
            train, val = self.channel.receive(agreement.label_holder, ROW_COUNTS).tolist()
            which = RowSet(torch.arange(train)), RowSet(torch.arange(val))  # made up: it is not told which ones
            self.rows = Rows(*which)
        for name, seed in self._material.items():
            self.channel.send(name, MATERIAL_SEED, torch.tensor(list(seed), dtype=torch.uint8))
        if agreement.dealt:
            super().set_up(moment)
        self._prepare(self._forward(self._steps[0]))

    def forward(self, moment: Moment) -> None:
        """Corrections for the layers on shares. Reveals: nothing, they are uniform."""
        self._deal()
        if not moment.step.evaluates:
            self._prepare(self._backward())

    def decide(self, moment: Moment) -> bool:
        """Hear the label holder's word; from now on it is certain which pass comes next."""
        stop = super().decide(moment)
        self._prepare(self._everything() if stop else self._backward())
        return stop

    def backward(self, moment: Moment) -> None:
        """Corrections for the way back. Reveals: nothing, they are uniform."""
        self._deal()
        self._prepare(self._forward(self._steps[moment.number + 1]))

    def predict(self, moment: Moment) -> None:
        """Corrections for a pass over all nodes. Reveals: nothing, they are uniform."""
        self._deal()

    def _forward(self, step: Step) -> Iterator[Operation]:
        return forward_operations(self.agreement.widths, batch_size(step, self.rows))

    def _backward(self) -> Iterator[Operation]:
        return backward_operations(self.agreement.widths, self.rows.train_count)

    def _everything(self) -> Iterator[Operation]:
        return forward_operations(self.agreement.widths, self.agreement.nodes)

    def _prepare(self, operations: Iterator[Operation]) -> None:
        """Compute the coming pass in the background; only one that is certain to come, so that all count alike."""
        self._ahead = [self._worker.submit(self._corrections.compute, [operation]) for operation in operations]

    def _deal(self) -> None:
        for computed in self._ahead:
            for correction in computed.result():
                self.channel.send(self.agreement.corrected, MATERIAL_CORRECTION, correction)
