"""Where two versions of a federation file differ: what parties tell each other when they meet. Nothing is private."""

import hashlib
from collections.abc import Iterator

from vfgnn.shown import shown

PEM = "-----BEGIN"
SHOWN = 80  # characters of a key or value in which two files differ


def differences(ours: object, theirs: object, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Where two documents differ: the field, our value, theirs. Certificates are too long to show.

    `theirs` may be a peer's: it is shown without control characters, and not followed deeper than ours.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            name = shown(str(key), most=SHOWN)
            yield from differences(ours.get(key), theirs.get(key), f"{path}.{name}" if path else name)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            label = one.get("name", i) if isinstance(one, dict) else i
            yield from differences(one, other, f"{path}[{label}]")
    elif ours != theirs:
        yield path, _shown(ours), _shown(theirs)


def _shown(value: object) -> str:
    if isinstance(value, str) and value.lstrip().startswith(PEM):
        return f"a certificate with digest {hashlib.sha256(value.encode()).hexdigest()[:12]}"
    if isinstance(value, (list, dict)):
        return f"{len(value)} entries"
    return "nothing" if value is None else shown(str(value), most=SHOWN)
