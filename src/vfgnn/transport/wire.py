"""What travels in the WebSocket between two parties. No pickle: typed headers, and raw little-endian words.

    hello    both, first          versions, who, and the whole public federation file
    start    label holder -> all  the run, the fresh name of this start of it, the step that all stand at, and the
                                  version that all speak
    message  a declared message   its header; the payload follows in binary chunks of at most CHUNK bytes
    ack      receiver -> sender   messages up to this number have been used; what is not acked is sent again after a
                                  lost connection, and messages that wait for it have a budget (connection.py)

Headers are JSON text, payloads binary, so neither can be taken for the other.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NoReturn

import msgspec
import numpy as np
import torch

from vfgnn.errors import ProtocolError
from vfgnn.messages import Declared, Kind

PROTOCOLS = (1,)
"""The versions of what is sent that this program speaks, in rising order; every change of it is a new one.

A version says what the whole schedule looks like, so one is spoken by all parties of a run: the highest that all of
them know, named by the label holder."""

CHUNK = 2**20
MAX_LENGTH = 2**40  # of one dimension, whatever the others are
MAX_HEADER = 2**20  # of a hello, which carries the federation file
MAX_PROTOCOLS = 64  # versions in one hello
DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "float64": torch.float64,
    "int64": torch.int64,
    "uint8": torch.uint8,
}
if sys.byteorder != "little":
    raise ImportError("vfgnn sends words as they lie in memory, and expects them little-endian")
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


Name = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
"""Of a run or a start; it becomes part of a folder's name."""


class Version(msgspec.Struct, frozen=True, tag="hello", omit_defaults=True, kw_only=True):
    """The part of a hello that every version of the program can read."""

    protocol: int  # the highest version that the sender speaks
    program: str
    protocols: Annotated[tuple[int, ...], msgspec.Meta(max_length=MAX_PROTOCOLS)] = ()  # all of them, if several

    @property
    def spoken(self) -> tuple[int, ...]:
        """A program that names a single number speaks just that one."""
        return self.protocols or (self.protocol,)


class Hello(Version, frozen=True, tag="hello", omit_defaults=True, kw_only=True):
    """Who is there, and what it works with. All of it is public to the parties of the federation.

    Fields that are not known here are passed over: a newer program may say more, and speak our version all the same.
    """

    sender: str
    receiver: str
    time: float  # seconds since 1970 by the sender's clock
    session: str  # drawn anew whenever the sender begins to meet its peers
    knows: str | None  # the receiver's session that the sender has exchanged messages with
    received: int  # messages of this link that need not be sent again
    run: str | None  # the run that it has checkpoints of
    steps: tuple[int, ...]  # at whose beginning it can stand again
    federation: dict[str, object]
    purpose: str = "run"  # the command that was started


class Start(msgspec.Struct, frozen=True, tag="start", forbid_unknown_fields=True, omit_defaults=True):
    """The label holder's word that all have come."""

    run: Name  # stays the same when a run goes on after a kill
    start: Name  # fresh each time: every mask is derived from it
    step: Annotated[int, msgspec.Meta(ge=0)]  # where all stand
    protocol: int = 1  # the version that all speak


class Message(msgspec.Struct, frozen=True, tag="message", forbid_unknown_fields=True):
    """The header of a declared message; sender and receiver are those of the connection."""

    start: str
    number: int
    kind: Annotated[str, msgspec.Meta(max_length=64)]
    dtype: Literal["float32", "float64", "int64", "uint8"]
    shape: tuple[int, ...]


class Ack(msgspec.Struct, frozen=True, tag="ack", forbid_unknown_fields=True):
    """Messages up to `number` have been used."""

    number: int


Header = Hello | Start | Message | Ack
_encoder, _version = msgspec.json.Encoder(), msgspec.json.Decoder(Version)
_decoder: msgspec.json.Decoder[Header] = msgspec.json.Decoder(Header)


def encode(header: Header) -> str:
    """As text."""
    return _encoder.encode(header).decode()


def decode(text: str | bytes, *, sender: str) -> Header:
    """From text; anything but one of the four headers is refused by name."""
    if isinstance(text, bytes):
        _refuse("a payload without its header", "a header", f"{len(text)} bytes", sender)
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        _refuse("a header that cannot be read", "hello, start, message or ack", str(error)[:120], sender)


def highest_common(*spoken: Iterable[int]) -> int | None:
    """The version for several parties, or None."""
    return max(set.intersection(*map(set, spoken)), default=None)


def decode_version(text: str | bytes, *, sender: str) -> Version:
    """The versions in a hello, whatever else it says."""
    try:
        return _version.decode(text)
    except msgspec.DecodeError as error:
        _refuse("no hello", "a hello", str(error)[:120], sender)


def declared(header: Message, *, sender: str, receiver: str, kinds: Mapping[Kind, int]) -> Declared:
    """What a header announces, once it is known to be possible: `kinds` has the bytes of the largest of each."""
    kind = next((kind for kind in kinds if kind == header.kind), None)
    if kind is None:
        _refuse("a message of a kind that this link does not have", "one of the program's", header.kind, sender)
    if any(not 0 <= length <= MAX_LENGTH for length in header.shape) or len(header.shape) > 4:
        _refuse("a message of impossible shape", f"lengths from 0 to {MAX_LENGTH}", str(header.shape)[:80], sender)
    announced = Declared(kind, sender, receiver, DTYPES[header.dtype], header.shape)
    if announced.bytes > kinds[kind]:
        _refuse("a message larger than any of the schedule", f"at most {kinds[kind]} bytes", str(announced), sender)
    return announced


def payload_bytes(payload: torch.Tensor) -> memoryview:
    """A contiguous CPU tensor's own memory."""
    return payload.numpy().reshape(-1).view(np.uint8).data


class Assembly:
    """A message whose chunks are coming; its memory is taken once, and never more than was announced."""

    def __init__(self, message: Declared) -> None:
        self.message = message
        self.payload = torch.empty(message.shape, dtype=message.dtype)
        self._room = payload_bytes(self.payload)
        self._filled = 0

    @property
    def complete(self) -> bool:
        """Whether all bytes are there."""
        return self._filled == self.message.bytes

    def add(self, chunk: str | bytes) -> None:
        """The next chunk."""
        if isinstance(chunk, str):
            _refuse("a header within a payload", f"{self.message}", "text", self.message.sender)
        end = self._filled + len(chunk)
        if end > self.message.bytes or not chunk:
            _refuse("a chunk that does not fit", f"{self.message.bytes} bytes", f"{end} bytes", self.message.sender)
        self._room[self._filled : end] = chunk
        self._filled = end


def _refuse(what: str, expected: str, got: str, sender: str) -> NoReturn:
    raise ProtocolError(what, expected=expected, got=got, where=f"the link from {sender}")
