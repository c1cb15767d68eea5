"""The OpenMined PSI library behind a few calls on bytes: private set intersection by commuting encryption on P-256.

Structure RAW: encrypted ids one by one, so nothing is found that is not common. Every call makes the library's object
anew from this holder's key: the library works without the interpreter's lock, but two threads in one of its objects
end the process. Runs at each of two holders; the key never leaves.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType

from vfgnn.errors import ConfigError, ProtocolError

UNUSED_RATE, UNUSED_COUNT = 0.5, 1  # of false positives, and of the asker's ids: RAW depends on neither


class OpenMined:
    """One holder's end, with a key of its own; `peer` is named where its messages cannot be used."""

    def __init__(self, peer: str) -> None:
        self._psi, self._peer = _library(), peer
        self._key: bytes = self._psi.client.CreateWithNewKey(True).GetPrivateKeyBytes()

    def request(self, ids: list[bytes]) -> bytes:
        """The asker's ids, encrypted under its key."""
        client = self._psi.client.CreateFromKey(self._key, True)
        request: bytes = client.CreateRequest(ids).SerializeToString()
        return request

    def encrypted(self, ids: list[bytes]) -> list[bytes]:
        """The answering holder's ids, encrypted under its key."""
        server = self._psi.server.CreateFromKey(self._key, True)
        setup = server.CreateSetupMessage(UNUSED_RATE, UNUSED_COUNT, ids, self._psi.DataStructure.RAW)
        return list(setup.raw.encrypted_elements)

    def setup(self, pieces: Iterable[list[bytes]]) -> bytes:
        """All its encrypted ids in one message, sorted."""
        setup = self._psi.ServerSetup()
        setup.raw.encrypted_elements.extend(sorted(element for piece in pieces for element in piece))
        message: bytes = setup.SerializeToString()
        return message

    def response(self, request: bytes, ids: int) -> bytes:
        """The asker's encrypted ids, encrypted once more under this holder's key."""
        server = self._psi.server.CreateFromKey(self._key, True)
        with self._refusing():
            read = self._psi.Request.FromString(request)
            self._demand(len(read.encrypted_elements) == ids)
            response: bytes = server.ProcessRequest(read).SerializeToString()
        return response

    def read_setup(self, setup: bytes, ids: int) -> object:
        """The other holder's encrypted ids, as `common` takes them."""
        with self._refusing():
            read = self._psi.ServerSetup.FromString(setup)
            elements = list(read.raw.encrypted_elements)
            self._demand(len(elements) == ids and elements == sorted(set(elements)))
        return read

    def common(self, setup: object, response: bytes, ids: int) -> list[int]:
        """Which ids of a request are among the other holder's, by their places in it."""
        client = self._psi.client.CreateFromKey(self._key, True)
        with self._refusing():
            read = self._psi.Response.FromString(response)
            self._demand(len(read.encrypted_elements) == ids)
            places: list[int] = client.GetIntersection(setup, read)
        return places

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

        try:
            yield
        except (RuntimeError, DecodeError):
            raise self._refusal() from None

    def _demand(self, whole: bool) -> None:
        if not whole:
            raise self._refusal()

    def _refusal(self) -> ProtocolError:
        return ProtocolError(
            "a PSI message that cannot be used",
            expected="one point of P-256 for each id; those of a setup sorted, without repeats",
            where=f"from {self._peer}",
        )


def _library() -> ModuleType:
    try:
        import private_set_intersection.python as psi
    except ImportError:
        raise ConfigError(
            "alignment by psi needs a library that is not here",
            expected="the extra `psi`: pip install 'vfgnn[psi]'",
            hint="or align by tokens, which needs no library, but a server that does not collude",
        ) from None
    library: ModuleType = psi
    return library
