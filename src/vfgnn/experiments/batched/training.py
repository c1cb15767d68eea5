"""The training of many points as one computation, each as the product trains it.

Runs wherever the search runs. Momentum SGD for the shared W (equal to the holders' linear form of it), Adam for the
rest, an evaluation on validation rows before every step. A point that diverges disturbs no other: nothing is summed
over points but the loss, whose gradients are apart.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from vfgnn.experiments.batched.jobs import Curve, Job
from vfgnn.experiments.batched.network import Points, StackedNetwork, StackShape, initial
from vfgnn.experiments.batched.surroundings import Around, Partition, Wanted, around

ALIGNED = 32  # weights of a point: a GPU multiplies what begins at such a place faster
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults for Adam


class Adam:
    """torch's Adam with a rate and an L2 term for each point; weights are [points, ...] in place."""

    def __init__(self, weight: torch.Tensor, rate: torch.Tensor, decay: torch.Tensor) -> None:
        self._weight, self._rate, self._decay = weight, rate, decay
        self.state = [torch.zeros_like(weight), torch.zeros_like(weight)]
        self.state += [weight.new_ones((), dtype=torch.float64), weight.new_ones((), dtype=torch.float64)]

    def step(self, gradient: torch.Tensor) -> None:
        """One step."""
        first, second, power, power_2 = self.state
        gradient = torch.addcmul(gradient, self._decay, self._weight)
        first.mul_(FIRST_DECAY).add_(gradient, alpha=1 - FIRST_DECAY)
        second.mul_(SECOND_DECAY).addcmul_(gradient, gradient, value=1 - SECOND_DECAY)
        power.mul_(FIRST_DECAY)
        power_2.mul_(SECOND_DECAY)
        size = (1 / (1 - power)).to(first.dtype) * self._rate
        root = (second.sqrt() / (1 - power_2).sqrt().to(first.dtype)).add_(EPSILON)
        self._weight.addcmul_(first / root, size, value=-1)


class StackedMomentum:
    """torch's SGD with momentum and coupled decay."""

    def __init__(self, weight: torch.Tensor, rate: torch.Tensor, momentum: torch.Tensor, decay: torch.Tensor) -> None:
        self._weight, self._rate, self._momentum, self._decay = weight, rate, momentum, decay
        self.state = [torch.zeros_like(weight)]

    def step(self, gradient: torch.Tensor) -> None:
        """One step."""
        velocity = self.state[0]
        velocity.mul_(self._momentum).add_(gradient).addcmul_(self._decay, self._weight)
        self._weight.addcmul_(velocity, self._rate, value=-1)


class FirstLayer:
    """W of all points: one matrix [columns, points * d] for each way to prepare the features.

    Points whose W is one party's own (`individual`) take Adam's step, the others momentum SGD's.
    """

    def __init__(self, shape: StackShape, points: Points, generator: torch.Generator) -> None:
        count = len(points.jobs)
        split = {False: (0, count - points.scaled), True: (count - points.scaled, count)}
        self.split = {scaled: ends for scaled, ends in split.items() if ends[0] < ends[1]}
        rate = points.number("learning_rate")[None, :, :, 0], points.number("weight_decay")[None, :, :, 0]
        joint = [points.number(f"joint_{name}") for name in ("learning_rate", "momentum", "weight_decay")]
        self._individual = points.whether("initial_embedding", "individual")[None, :, :, 0] > 0
        kinds = {job.values["initial_embedding"] for job in points.jobs}
        self.weights, self._adams, self._momenta = (
            list[torch.Tensor](),
            list[Adam | None](),
            list[StackedMomentum | None](),
        )
        for begin, end in self.split.values():
            weight = _draw_first(shape, end - begin, joint[0].dtype, generator)
            part = slice(begin, end)
            self.weights.append(weight)
            self._adams.append(Adam(weight, *(one[:, part] for one in rate)) if "individual" in kinds else None)
            shared = [one[None, part, :, 0] for one in joint]
            self._momenta.append(StackedMomentum(weight, *shared) if "collaborative" in kinds else None)

    @property
    def state(self) -> list[torch.Tensor]:
        """All that changes."""
        kept = [one.state for one in (*self._adams, *self._momenta) if one is not None]
        return self.weights + [tensor for state in kept for tensor in state]

    def step(self, gradients: Sequence[torch.Tensor]) -> None:
        """Each point by its own optimiser."""
        ways = zip(self.weights, self._adams, self._momenta, self.split.values(), gradients, strict=True)
        for weight, adam, momentum, (begin, end), gradient in ways:
            if adam is None or momentum is None:
                (adam or momentum).step(gradient)  # type: ignore[union-attr]
                continue
            before = weight.clone()
            adam.step(gradient)
            by_adam = weight.clone()
            weight.copy_(before)
            momentum.step(gradient)
            weight.copy_(torch.where(self._individual[:, begin:end], by_adam, weight))


def _draw_first(shape: StackShape, points: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Glorot's bound; between holders a sum of one share from each, with the same variance."""
    bound = math.sqrt(6 / (shape.columns + shape.dim) / shape.holders)
    size = shape.columns, points, shape.dim
    drawn = torch.zeros(size, device=generator.device, dtype=dtype)
    for _ in range(shape.holders):
        drawn += torch.rand(size, generator=generator, device=generator.device, dtype=dtype) * 2 - 1
    return drawn * bound


class Training:
    """All points of one shape."""

    def __init__(self, place: Partition, jobs: Sequence[Job], dtype: torch.dtype, device: torch.device) -> None:
        self.jobs = sorted(jobs, key=lambda job: job.values["feature_scaling"] == "row")
        values = self.jobs[0].values
        gnn, layers, dim, hidden = (values[name] for name in ("gnn", "layers", "dim", "hidden_layers"))
        holders = len(place.edges)
        self.epochs = int(values["epochs"] or 0)
        shape = StackShape(
            str(gnn), int(layers or 0), int(dim or 0), int(hidden or 0), holders, place.columns, place.classes
        )
        points = Points(self.jobs, dtype, device)
        generator = torch.Generator(device).manual_seed(int(values["layers"] or 0) * 4096 + self.jobs[0].seed)
        self.first, drawn = FirstLayer(shape, points, generator), initial(shape, points, generator)
        self._sizes = {name: value.shape[1:] for name, value in drawn.items()}
        flat = torch.cat([value.flatten(1) for value in drawn.values()], dim=1)
        self.rest = F.pad(flat, (0, -flat.shape[1] % ALIGNED))
        self._adam = Adam(self.rest, points.number("learning_rate")[:, 0], points.number("weight_decay")[:, 0])
        self._network, self._shape = StackedNetwork(shape, points), shape
        wanted = Wanted(str(gnn), int(layers or 0), tuple(self.first.split), dtype, device)
        self._train = [around(place, i, place.train, wanted) for i in range(holders)]
        self._val = [around(place, i, place.val, wanted) for i in range(holders)]
        self._y_train, self._y_val = (torch.from_numpy(y).to(device) for y in (place.y_train, place.y_val))
        self.right = torch.zeros(self.epochs + 1, len(jobs), dtype=dtype, device=device)
        self.largest = torch.zeros(len(jobs), dtype=dtype, device=device)
        self.epoch = torch.zeros(1, dtype=torch.int64, device=device)

    @property
    def state(self) -> list[torch.Tensor]:
        """All that an epoch changes."""
        return [*self.first.state, self.rest, *self._adam.state, self.right, self.largest, self.epoch]

    def weights(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        """Views of everything but W, by name."""
        lengths = [math.prod(size) for size in self._sizes.values()]
        parts = torch.split(flat, [*lengths, flat.shape[1] - sum(lengths)], dim=1)
        return {name: part.view(-1, *size) for (name, size), part in zip(self._sizes.items(), parts, strict=False)}

    def step(self) -> None:
        """Evaluate the weights of now, then one step of all."""
        with torch.no_grad():
            logits, h0 = self._logits(self._val, self.first.weights, self.rest, drops=False)
            self.right.index_copy_(0, self.epoch, (logits.argmax(2) == self._y_val).to(h0[0].dtype).mean(1)[None])
            for one in h0:
                torch.maximum(self.largest, one.abs().amax((0, 2)), out=self.largest)
        first = [weight.detach().requires_grad_() for weight in self.first.weights]
        rest = self.rest.detach().requires_grad_()
        logits, _ = self._logits(self._train, first, rest, drops=True)
        points, rows = logits.shape[:2]
        loss = F.cross_entropy(logits.flatten(0, 1), self._y_train.repeat(points), reduction="sum") / rows
        *gradients, gradient = torch.autograd.grad(loss, [*first, rest])
        with torch.no_grad():
            self.first.step(gradients)
            self._adam.step(gradient)
            self.epoch.add_(1)

    def _logits(
        self, places: list[Around], firsts: list[torch.Tensor], rest: torch.Tensor, *, drops: bool
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        weights, rows, h0s = self.weights(rest), [], []
        for i, one in enumerate(places):
            parts = [
                one.features[scaled](first.flatten(1)).view(-1, *first.shape[1:])
                for scaled, first in zip(self.first.split, firsts, strict=True)
            ]
            h0 = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
            rows.append(self._network.rows_of(i, h0, one, weights))
            h0s.append(h0)
        return self._network.logits(rows, [one.degree for one in places], weights, drops=drops), h0s

    def curves(self) -> list[Curve]:
        """What became of each point."""
        reached, largest = self.right.double().cpu().t().tolist(), self.largest.double().cpu().tolist()
        return [Curve(job, tuple(found), most) for job, found, most in zip(self.jobs, reached, largest, strict=True)]


def train(
    place: Partition, jobs: Sequence[Job], *, device: torch.device, dtype: torch.dtype = torch.float32
) -> list[Curve]:
    """Train all jobs of one shape; on a GPU every epoch is one replayed graph."""
    training = Training(place, jobs, dtype, device)
    step = _replayed(training) if device.type == "cuda" else training.step
    for _ in range(training.epochs + 1):
        step()
    return training.curves()


def _replayed(training: Training) -> Callable[[], None]:
    """An epoch as a CUDA graph: hundreds of small kernels then start at once."""
    kept = [one.clone() for one in training.state]
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            training.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        training.step()
    for one, before in zip(training.state, kept, strict=True):
        one.copy_(before)
    return graph.replay
