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
from math import prod
from typing import Annotated, Literal, NoReturn

import msgspec
import numpy as np
import torch

from vfgnn.errors import ProtocolError
from vfgnn.messages import Declared, Kind
from vfgnn.shown import shown

PROTOCOLS = (2,)
"""The versions of what is sent that this program speaks, in rising order; every change of it is a new one.

1: until vfgnn's message log had its second format      2: a hello tells the key of the sender's log digests

A version says what the whole schedule looks like, so one is spoken by all parties of a run: the highest that all of
them know, named by the label holder."""

CHUNK = 2**20
MOST = 2**40  # values in a message, if a length of 0 counts as 1
MAX_HEADER = 2**20  # of a hello, which carries the federation file
MAX_PROTOCOLS = 64  # versions in one hello
MAX_STEPS = 64  # that a party can stand at; it keeps a handful
SHOWN = 120  # characters of what a peer said that enter an error
DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "float64": torch.float64,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "uint8": torch.uint8,
}
if sys.byteorder != "little":
    raise ImportError("vfgnn sends words as they lie in memory, and expects them little-endian")
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


Name = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
"""Of a run, a start or a session; a run's becomes part of a folder's name."""
Party = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}\Z")]
Program = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.+!-]{1,64}\Z")]
Purpose = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z -]{0,63}\Z")]
LogKey = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]  # that a float64 still tells apart, as many readers of JSON do
Protocol = Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class Version(msgspec.Struct, frozen=True, tag="hello", omit_defaults=True, kw_only=True):
    """The part of a hello that every version of the program can read."""

    protocol: Protocol  # the highest version that the sender speaks
    program: Program
    protocols: Annotated[tuple[Protocol, ...], msgspec.Meta(max_length=MAX_PROTOCOLS)] = ()  # all of them, if several

    @property
    def spoken(self) -> tuple[int, ...]:
        """A program that names a single number speaks just that one."""
        return self.protocols or (self.protocol,)


class Hello(Version, frozen=True, tag="hello", omit_defaults=True, kw_only=True):
    """Who is there, and what it works with. All but the log key is public to the parties of the federation.

    Fields that are not known here are passed over: a newer program may say more, and speak our version all the same.
    """

    sender: Party
    receiver: Party
    time: Annotated[float, msgspec.Meta(ge=0, le=1e12)]  # seconds since 1970 by the sender's clock
    session: Name  # drawn anew whenever the sender begins to meet its peers
    knows: Name | None  # the receiver's session that the sender has exchanged messages with
    received: Number  # messages of this link that need not be sent again
    run: Name | None  # the run that it has checkpoints of
    steps: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MAX_STEPS)]  # at whose beginning it can stand again
    federation: dict[str, object]
    log_key: LogKey  # of this sender, receiver and session: of the digests of what the one sends the other
    purpose: Purpose = "run"  # the command that was started

    def __repr__(self) -> str:
        return f"Hello({self.sender}->{self.receiver})"  # never the key


class Start(msgspec.Struct, frozen=True, tag="start", forbid_unknown_fields=True, omit_defaults=True):
    """The label holder's word that all have come."""

    run: Name  # stays the same when a run goes on after a kill
    start: Name  # fresh each time: every mask is derived from it
    step: Number  # where all stand
    protocol: Protocol = 1  # the version that all speak


class Message(msgspec.Struct, frozen=True, tag="message", forbid_unknown_fields=True):
    """The header of a declared message; sender and receiver are those of the connection."""

    start: Annotated[str, msgspec.Meta(max_length=64)]
    number: Number
    kind: Annotated[str, msgspec.Meta(max_length=64)]
    dtype: Literal["float32", "float64", "int64", "int32", "int16", "uint8"]
    shape: tuple[int, ...]


class Ack(msgspec.Struct, frozen=True, tag="ack", forbid_unknown_fields=True):
    """Messages up to `number` have been used."""

    number: Number


Header = Hello | Start | Message | Ack
_encoder, _version = msgspec.json.Encoder(), msgspec.json.Decoder(Version)
_decoder: msgspec.json.Decoder[Header] = msgspec.json.Decoder(Header)
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)  # the last of JSON that is nested without end


def encode(header: Header) -> str:
    """As text."""
    return _encoder.encode(header).decode()


def decode(text: str | bytes, *, sender: str) -> Header:
    """From text; anything but one of the four headers is refused by name."""
    if isinstance(text, bytes):
        _refuse("a payload without its header", "a header", f"{len(text)} bytes", sender)
    try:
        return _decoder.decode(text)
    except UNREADABLE as error:
        _refuse("a header that cannot be read", "hello, start, message or ack", str(error), sender)


def highest_common(*spoken: Iterable[int]) -> int | None:
    """The version for several parties, or None."""
    return max(set.intersection(*map(set, spoken)), default=None)


def decode_version(text: str | bytes, *, sender: str) -> Version:
    """The versions in a hello, whatever else it says."""
    if isinstance(text, bytes):
        _refuse("no hello", "a hello", f"{len(text)} bytes that are no text", sender)
    try:
        return _version.decode(text)
    except UNREADABLE as error:
        _refuse("no hello", "a hello", str(error), sender)


def declared(header: Message, *, sender: str, receiver: str, kinds: Mapping[Kind, int]) -> Declared:
    """What a header announces, once it is known to be possible: `kinds` has the bytes of the largest of each."""
    kind = next((kind for kind in kinds if kind == header.kind), None)
    if kind is None:
        _refuse("a message of a kind that this link does not have", "one of the program's", header.kind, sender)
    # A length of 0 must not hide the others: torch multiplies them to find where a row begins.
    if min(header.shape, default=0) < 0 or len(header.shape) > 4 or prod(max(1, one) for one in header.shape) > MOST:
        _refuse("a message of impossible shape", f"at most 4 lengths, {MOST} values", str(header.shape), sender)
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
    raise ProtocolError(what, expected=expected, got=shown(got, most=SHOWN), where=f"the link from {sender}")
