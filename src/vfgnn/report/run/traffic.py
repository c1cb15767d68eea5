"""What crossed links, from the records of several parties: each message is counted once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from vfgnn.report.run.records import Kept, LinkRecord


def once(kept: Sequence[Kept]) -> list[LinkRecord]:
    """By its sender's record, or by the receiver's where the sender's is not here; who waited is the receiver."""
    here = {one.party for one in kept}
    waited: dict[tuple[str, str, str], float] = defaultdict(float)
    for one in kept:
        for link in one.traffic:
            waited[link.sender, link.receiver, link.phase] += link.waited_s if link.receiver == one.party else 0.0
    return [
        link.model_copy(update={"waited_s": waited[link.sender, link.receiver, link.phase]})
        for one in kept
        for link in one.traffic
        if link.sender == one.party or link.sender not in here
    ]


def added(links: Iterable[LinkRecord], by: Callable[[LinkRecord], str | None]) -> dict[str, LinkRecord]:
    """Added up under each name that `by` gives, the largest first; None is left out."""
    found = dict[str, LinkRecord]()
    for link in links:
        if (name := by(link)) is None:
            continue
        one = found.get(name, link.model_copy(update={"messages": 0, "bytes": 0, "waited_s": 0.0}))
        found[name] = one.model_copy(
            update={
                "messages": one.messages + link.messages,
                "bytes": one.bytes + link.bytes,
                "waited_s": one.waited_s + link.waited_s,
            }
        )
    return dict(sorted(found.items(), key=lambda item: -item[1].bytes))


def ends_of(link: LinkRecord) -> str:
    """Its name on a page."""
    return f"{link.sender} → {link.receiver}"
