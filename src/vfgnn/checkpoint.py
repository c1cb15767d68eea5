"""A party's own state, so that a kill costs no more than the steps since the last checkpoint.

The state is what this party has at the beginning of a step: weights, optimiser, its shares, random state. It never
leaves the party's disk. One safetensors file for each kept step, written beside its place, flushed and renamed, so that
it is whole or not there; a digest over names, shapes and bytes finds whatever happened to it later.

The last two steps are also kept in memory: a party that is stopped in order writes the last of them, and those that
wait for a restarted peer go back to the step that all have.
"""

import hashlib
import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self, get_args, get_origin, get_type_hints

import torch

from vfgnn.agreement import Agreement
from vfgnn.errors import CheckpointRefused
from vfgnn.tensor_file import read_tensors, write_tensors
from vfgnn.writing import make_folder, remove, tidy

State = dict[str, torch.Tensor]
KEPT = 2  # in memory, and of the scheduled ones on disk: parties are never further apart than one of them
FORMAT = "vfgnn checkpoint 2"  # 2: states are typed (RoleState)
HINT = "move the file away to go on from an earlier step, or restore it"


def nest(prefix: str, state: Mapping[str, torch.Tensor]) -> State:
    """The same tensors under `prefix/`."""
    return {f"{prefix}/{name}": tensor for name, tensor in state.items()}


def part(state: Mapping[str, torch.Tensor], prefix: str) -> State:
    """The tensors under `prefix/`."""
    return {name.removeprefix(f"{prefix}/"): tensor for name, tensor in state.items() if name.startswith(f"{prefix}/")}


def copied(state: Mapping[str, torch.Tensor]) -> State:
    """Tensors that nobody else will change."""
    return {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in state.items()}


class RoleState:
    """Base of what roles keep: dataclasses whose fields are tensors, numbers, tensors by name, or such dataclasses.

    None is left out of the file, and comes back as None.
    """

    def to_tensors(self) -> State:
        """For a checkpoint."""
        flat: State = {}
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if isinstance(value, RoleState):
                flat |= nest(one.name, value.to_tensors())
            elif isinstance(value, dict):
                flat |= nest(one.name, value)
            elif isinstance(value, torch.Tensor):
                flat[one.name] = value
            elif value is not None:
                flat[one.name] = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.int64)
        return flat

    @classmethod
    def from_tensors(cls, state: Mapping[str, torch.Tensor]) -> Self:
        """From a checkpoint."""
        hints = get_type_hints(cls)
        return cls(**{one.name: _field(hints[one.name], one.name, state) for one in fields(cls)})  # type: ignore[arg-type]

    def over(self, places: torch.Tensor, agreement: Agreement) -> Self:
        """For a prediction over other nodes: trained node i stands at `places[i]` of those that are agreed on now."""
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # never its content


@dataclass(frozen=True, repr=False)
class NoState(RoleState):
    """Of a role that begins anew with every start."""


def _field(hint: object, name: str, state: Mapping[str, torch.Tensor]) -> object:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)] if type(None) in get_args(hint) else [hint]
    kind, inner = kinds[0], part(state, name)
    if isinstance(kind, type) and issubclass(kind, RoleState):
        return kind.from_tensors(inner) if inner else None
    if get_origin(kind) is dict:
        return inner
    if name not in state:
        if kinds == [hint]:
            raise CheckpointRefused("a checkpoint that lacks something", expected=name, hint=HINT)
        return None
    try:
        return state[name] if kind is torch.Tensor else kind(state[name].item())  # type: ignore[operator]
    except (RuntimeError, ValueError, OverflowError):  # not one number
        raise CheckpointRefused("a checkpoint with something else in it", expected=name, hint=HINT) from None


def scattered(by_node: torch.Tensor, places: torch.Tensor, nodes: int) -> torch.Tensor:
    """Rows of trained nodes at their places of now; 0 at new nodes."""
    spread = torch.zeros(nodes, *by_node.shape[1:], dtype=by_node.dtype)
    spread[places] = by_node
    return spread


class Checkpoints:
    """The states that one party can go back to, of one run of one federation."""

    def __init__(self, folder: Path, *, party: str, federation: str, scheduled: Container[int]) -> None:
        self.folder, self._party, self._federation = folder, party, federation
        self.scheduled = scheduled  # the steps that every party writes
        self._memory: dict[int, State] = {}
        self.run: str | None = None
        tidy(folder)
        for path in self._files():
            about, _ = self._read(path)  # whatever cannot be used is refused now, not in the middle of a run
            if self.run not in (None, about["run"]):
                raise CheckpointRefused("checkpoints of two runs", where=str(folder), hint="move one of them away")
            self.run = str(about["run"])

    @property
    def steps(self) -> list[int]:
        """The steps at whose beginning this party can stand again."""
        return sorted({*self._memory, *(_step(path) for path in self._files())})

    def remember(self, step: int, state: State) -> None:
        """Keep the beginning of `step` in memory."""
        self._memory[step] = state
        for old in sorted(self._memory)[:-KEPT]:
            del self._memory[old]

    def write(self, step: int | None = None) -> int | None:
        """Put the remembered beginning of `step` (None: of the last one) on disk, and remove what is too old.

        A step out of schedule, of a party that was stopped, never takes the place of one that all have.
        """
        step = max(self._memory, default=None) if step is None else step
        if step is None:
            return None
        state, about = {name: one.detach().cpu() for name, one in self._memory[step].items()}, self._about(step)
        about["digest"] = _digest(about, state)
        make_folder(self.folder)
        write_tensors(self.folder / f"step-{step:08d}.safetensors", state, about)
        files = list(self._files())
        in_schedule = [path for path in files if _step(path) in self.scheduled]
        others = [path for path in files if path not in in_schedule]
        for old in [*in_schedule[:-KEPT], *others[:-1]]:
            remove(old)
        return step

    def load(self, step: int) -> State:
        """The state at the beginning of `step`."""
        if step in self._memory:
            return self._memory[step]
        return self._read(self.folder / f"step-{step:08d}.safetensors")[1]

    def go_back(self, run: str, step: int) -> None:
        """The run goes on from `step`: what came after it never happened. Nothing is left of another run."""
        keeps = -1 if run != self.run else step
        self.run = run
        self._memory = {kept: state for kept, state in self._memory.items() if kept <= keeps}
        for path in list(self._files()):
            if _step(path) > keeps:
                remove(path)

    def forget_earlier(self) -> None:
        """There is no going back behind the last step on the disk: something is about to be opened that follows it."""
        *earlier, last = self._files()
        self._memory = {step: state for step, state in self._memory.items() if step >= _step(last)}
        for path in earlier:
            remove(path)

    def _about(self, step: int) -> dict[str, object]:
        return {
            "format": FORMAT,
            "party": self._party,
            "federation": self._federation,
            "run": self.run,
            "step": step,
        }

    def _files(self) -> Iterator[Path]:
        return iter(sorted(self.folder.glob("step-*.safetensors")))

    def _read(self, path: Path) -> tuple[dict[str, object], State]:
        about, state = read_tensors(path, "a checkpoint", CheckpointRefused, hint=HINT)
        digest = about.pop("digest", None)
        if digest != _digest(about, state):
            raise CheckpointRefused("a checkpoint that was altered", where=str(path), hint=HINT)
        for key, ours in (("format", FORMAT), ("party", self._party), ("federation", self._federation)):
            if about.get(key) != ours:
                raise CheckpointRefused(
                    f"a checkpoint of another {key}",
                    expected=ours[:64],
                    got=str(about.get(key))[:64],
                    where=str(path),
                    hint="`vfgnn run --fresh` at all parties trains anew; or name another run_folder",
                )
        step, run = about.get("step"), about.get("run")
        if step != _step(path) or not isinstance(run, str):
            got = f"step {step} of run {run}"
            raise CheckpointRefused("a checkpoint of another step", got=got, where=str(path), hint=HINT)
        return about, state


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def _digest(about: Mapping[str, object], state: State) -> str:
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(state):
        tensor = state[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    return found.hexdigest()
