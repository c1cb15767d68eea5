"""What a holder does to its data and to its messages before they leave: noise, a copy, the ledger, then the message.

One `Publisher` per holder. It knows the public settings, the holder's own ledger and its own secret stream; nothing of
the model. With everything off it hands things through.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from vfgnn.errors import LedgerRefused
from vfgnn.privacy import calibration, input_perturbation
from vfgnn.privacy.copies import MessageCopies, NoisedCopy, new_copy_id, read_copy, write_copy
from vfgnn.privacy.ledger import ALL, Ledger, Release, refuse_beyond
from vfgnn.privacy.mechanisms import GaussianMechanism
from vfgnn.privacy.own_mechanism import OwnMechanism, OwnRows, check_mechanism, release_of
from vfgnn.randomness import Stream
from vfgnn.settings import Privacy

RowNoise = GaussianMechanism | OwnRows


def planned_releases(epochs: int) -> int:
    """The most releases of one row in a run: one per step, and one more for the prediction."""
    return epochs + 1


def row_mechanism(privacy: Privacy, epochs: int) -> GaussianMechanism | None:
    """For published rows: what the federation agreed on."""
    multiplier = _multiplier(privacy, privacy.row_epsilon, epochs)
    if multiplier is None:
        return None
    return GaussianMechanism(privacy.clip_norm, multiplier, privacy.adjacency, privacy.shrink)


def own_row_mechanism(own: OwnMechanism, privacy: Privacy, epochs: int, dim: int) -> OwnRows:
    """For published rows: a holder's own, which may cost no more than what the federation agreed on."""
    return check_mechanism(own, privacy, dim=dim, releases=planned_releases(epochs) if privacy.per == "run" else 1)


def gradient_mechanism(privacy: Privacy, epochs: int) -> GaussianMechanism | None:
    """For the gradient of z_L."""
    multiplier = _multiplier(privacy, privacy.gradient_epsilon, epochs)
    if multiplier is None:
        return None
    return GaussianMechanism(privacy.gradient_clip_norm, multiplier, privacy.adjacency)


def _multiplier(privacy: Privacy, epsilon: float | None, epochs: int) -> float | None:
    if epsilon is None:
        return None
    together = planned_releases(epochs) if privacy.per == "run" else 1
    return calibration.noise_multiplier(epsilon, privacy.delta, privacy.calibration, releases=together)


def affordable_epochs(privacy: Privacy, epochs: int) -> int:
    """Where training ends at the latest: all parties know it beforehand, from public numbers alone.

    A row is part of one message per step and may be part of one more at the prediction; at the label holder, gradients
    of the same row count beside its rows.
    """
    if privacy.budget_epsilon is None:
        return epochs
    mechanisms = (row_mechanism(privacy, epochs), gradient_mechanism(privacy, epochs))
    precision = sum(one.noise_multiplier**-2 for one in mechanisms if one is not None)
    if not precision:
        return epochs
    most = calibration.affordable(precision**-0.5, privacy.delta, privacy.budget_epsilon)
    return min(epochs, most - 1)


class Publisher:
    """Algorithm 1 and input perturbation at one holder."""

    def __init__(
        self,
        privacy: Privacy,
        *,
        epochs: int,
        run: str,
        seed: bytes,
        ledger: Ledger,
        rows: RowNoise | None = None,
        copies: MessageCopies | None = None,
    ) -> None:
        self.privacy, self.ledger, self._run, self._copies = privacy, ledger, run, copies
        self._rows = rows or row_mechanism(privacy, epochs)
        self._gradient = gradient_mechanism(privacy, epochs)
        self._planned = planned_releases(affordable_epochs(privacy, epochs))
        self._stream, self._input_stream = Stream(seed, "noise"), Stream(seed, "input perturbation")

    @property
    def noises_rows(self) -> bool:
        """Whether published rows are noised."""
        return self._rows is not None

    def resumed(self, releases: int) -> None:
        """A run goes on that had a ledger of so many lines: one with fewer is refused.

        All that it may release was covered when it began, and what it does again is sent again as it was.
        """
        self.ledger.refuse_fewer(releases)
        self._planned = 0

    def learn_rows(self, train: torch.Tensor, val: torch.Tensor) -> None:
        """Which rows are which class: as long as these stay what they are, all starts of a run add up by class."""
        if self._copies is not None:
            digest = hashlib.sha256(f"{len(train)} {len(val)}".encode())
            digest.update(torch.cat([train, val]).cpu().contiguous().numpy().tobytes())
            self._run = f"{self._copies.run} {digest.hexdigest()[:16]}"

    def refuse_spent(self) -> None:
        """Before anything is sent: refuse to begin with a budget that does not cover what the run may release."""
        used: list[tuple[str, RowNoise]] = [("rows", self._rows)] if self._rows is not None else []
        used += [("gradient", self._gradient)] if self._gradient is not None else []
        self._refuse_beyond([self._line(name, (ALL,), None, one) for name, one in used for _ in range(self._planned)])

    def rows(
        self, h_local: torch.Tensor, classes: tuple[str, ...], step: int | None, *, nodes: torch.Tensor
    ) -> torch.Tensor:
        """Published rows of `nodes`, as they may leave; `classes`: those that are charged with this message."""
        if self._rows is None or len(h_local) == 0:
            return h_local
        line = self._line("rows", classes, step, self._rows)
        return self._noised_message(line, nodes, h_local, self._rows)

    def gradient(
        self,
        gradient: torch.Tensor,
        classes: tuple[str, ...],
        step: int | None,
        *,
        nodes: torch.Tensor,
        train_rows: int,
    ) -> torch.Tensor:
        """dL/dz_L, as it may leave. L is a mean over `train_rows`: clipping looks at each row's own loss."""
        if self._gradient is None:
            return gradient
        line = self._line("gradient", classes, step, self._gradient)
        return self._noised_message(line, nodes, gradient * train_rows, self._gradient) / train_rows

    def _noised_message(self, line: Release, nodes: torch.Tensor, true: torch.Tensor, used: RowNoise) -> torch.Tensor:
        path = None if self._copies is None else self._copies.path(line.what, line.step, nodes)
        return self._once(line, path, lambda: used.release(true, self._stream)).to(true)

    def edges(self, edge_index: torch.Tensor, nodes: int) -> torch.Tensor:
        """The edges that this holder works with from now on."""
        epsilon = self.privacy.edge_epsilon
        if epsilon is None:
            return edge_index
        pairs = input_perturbation.pairs_of(edge_index)
        noised = self._noised_input(
            Release(self._run, None, "edges", "edge", (ALL,), epsilon=epsilon, categories=2),
            pairs,
            lambda: input_perturbation.flip_pairs(
                pairs, nodes, epsilon, self._input_stream, most=self.privacy.noised_edge_bound
            ),
            nodes,
        )
        return input_perturbation.edges_of(noised)

    def labels(self, y: torch.Tensor, classes: int, nodes: torch.Tensor) -> torch.Tensor:
        """The labels that training and validation see from now on; `nodes`: whose they are."""
        epsilon = self.privacy.label_epsilon
        if epsilon is None:
            return y
        return self._noised_input(
            Release(self._run, None, "labels", "label", (ALL,), epsilon=epsilon, categories=classes),
            torch.stack([y, nodes]),
            lambda: input_perturbation.flip_labels(y, classes, epsilon, self._input_stream),
            classes,
        )

    def _line(self, what: str, classes: tuple[str, ...], step: int | None, used: RowNoise) -> Release:
        return release_of(used, run=self._run, step=step, what=what, classes=classes)

    def _refuse_beyond(self, coming: Sequence[Release]) -> None:
        """Where the budget, which each row, edge and label has for itself, does not cover `coming`."""
        privacy = self.privacy
        charged = [line for line in coming if line.classes]
        if privacy.budget_epsilon is not None and charged:
            refuse_beyond(
                self.ledger, charged, budget=privacy.budget_epsilon, delta=privacy.delta, adjacency=privacy.adjacency
            )

    def _noised_input(
        self, release: Release, true: torch.Tensor, draw: Callable[[], torch.Tensor], about: int
    ) -> torch.Tensor:
        """The same in every run on the same data with the same epsilon, under any ledger of the same folder."""
        ledger = self.ledger
        if ledger.path is None:
            return self._once(release, None, draw)
        digest = hashlib.sha256(f"{release.what} {release.epsilon!r} {about} {tuple(true.shape)}".encode())
        digest.update(true.contiguous().numpy().tobytes())
        path = ledger.path.parent / f"noised-{release.what}-{digest.hexdigest()[:32]}.safetensors"
        if ledger.trained and not path.is_file():
            raise LedgerRefused(
                f"the {release.what} have changed since they were noised",
                expected=f"the {release.what} that the model was trained with",
                where=str(path.parent),
                hint="noise on inputs is drawn once: restore them, or train again",
            )
        return self._once(release, path, draw)

    def _once(self, line: Release, path: Path | None, draw: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Drawn and charged once, if there is a `path` for a copy: then it is that copy which leaves, however often."""
        copy = None if path is None else read_copy(path, line.what)
        known = copy is not None and self.ledger.knows(copy.copy_id)
        if not known:
            self._refuse_beyond([line])  # before anything is noised
        if copy is None or not copy.copy_id:  # a copy of an earlier version gets a name, and a line
            copy = NoisedCopy(draw() if copy is None else copy.noised, new_copy_id())
            if path is not None:
                write_copy(path, line.what, copy)
        if not known and line.classes:
            self.ledger.charge(line if path is None else replace(line, copy_id=copy.copy_id))
        return copy.noised
