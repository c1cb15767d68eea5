"""Words that are said to be uniform, looked at by whoever receives them: the dealer, and each holder.

Uniform   a classifier tells words from fresh random ones, by how often each byte comes at each place (naive Bayes). It
          looks at the words themselves, at sums of all shares of a value, and at differences of two messages of one
          kind and shape: a mask that is used twice leaves them short. Of a table of places it looks at the steps from
          one entry to the next.
Unrelated words that belong to nodes are held against everything that others have of these nodes: columns, degrees,
          labels, edges. A message whose words number the slots of a graph is looked at from both its ends.
A third of the words is learnt from, a third chooses where the words look least uniform, and a third is reported.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import torch
from scipy.special import ndtri
from torch import Generator, Tensor

from vfgnn.audit.attack import Attack, AttackFinding, Target
from vfgnn.audit.edges import cosines, drawn_pairs
from vfgnn.audit.others import of_each
from vfgnn.audit.statistics import auc, compare_rankings, compare_shares
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding
from vfgnn.messages import Kind
from vfgnn.sealed import program as sealed
from vfgnn.split import program as split

NOTHING = "nothing"  # how the description of such a message begins: its receiver learns nothing
TABLES = (sealed.GATHER_1, sealed.GATHER_2, sealed.GATHER_3)
FEWEST, MOST = 300, 30_000  # words of one kind and shape from one sender: fewer say nothing, more take time
PARTS = 3
DEVIATIONS = 2.0  # of an AUC, about (6 n)^-1/2, that chance is given where the least uniform words are chosen
COLUMNS, OF_ONE = 1024, 128  # of words that belong to nodes: of all messages, and of one of them, at most
OTHERS = 8  # pairs that are none, for each edge: a narrower interval around a guess
BY_CHANCE = 0.001  # of the columns look related where nothing is

UNIFORM = Attack(
    name="uniform words",
    who="dealer, holder",
    needs="nothing",
    target=Target.WORDS,
    gets="which words are masked ones, among fresh random words",
    metric="AUC, of the kind of message that looks least uniform",
    baseline="a guess",
    helps="nothing is needed",
    literature="classifier two-sample test: Lopez-Paz & Oquab 2017",
)
UNRELATED = Attack(
    name="words related to data",
    who="holder",
    needs="the data of the other holders, to be held against",
    target=Target.WORDS,
    gets="words that go with a column, the degrees or the labels of another holder",
    metric=f"share of the columns of words whose largest correlation is beyond what {BY_CHANCE:.1%} reach by chance",
    baseline="the same words given to other nodes",
    helps="nothing is needed",
    literature="correlation test with Bonferroni's bound",
)
WORD_EDGES = Attack(
    name="edges from words",
    who="holder",
    needs="nothing",
    target=Target.EDGES,
    gets="the edges of another holder",
    metric="AUC",
    baseline="a guess",
    helps="nothing is needed",
    literature="cosine of posteriors: He et al. 2021",
)


def uniform_words(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """For each sender, where its words look least uniform."""
    found = []
    for sender, series in sorted(received_words(view, rng).items()):
        worst = max((Classified.apart(*one, rng) for one in series), key=lambda one: one.chosen_by)
        compared = compare_rankings(worst.scores, {"a guess": torch.zeros_like(worst.scores)}, worst.real, rng)
        found.append(AttackFinding(UNIFORM, view.party, sender, compared))
    if not found:
        raise NotInView("words that are said to be uniform")
    return found


def words_and_data(view: View, truth: Truth, rng: Generator) -> list[AttackFinding]:
    """Everything that came, against everything that each other holder has."""
    words = words_of_nodes(view, rng)
    shuffled = words[torch.randperm(len(words), generator=rng)]

    def measure(about: str, holding: Holding) -> list[AttackFinding]:
        secrets = _secrets(truth, holding, len(words))
        hits = compare_shares(_related(words, secrets), {"other nodes": _related(shuffled, secrets)})
        findings = [AttackFinding(UNRELATED, view.party, about, hits)]
        try:
            pairs, real = drawn_pairs(holding, rng, others=OTHERS)
        except NotInView:
            return findings
        compared = compare_rankings(cosines(words, pairs), {"a guess": torch.zeros(pairs.shape[1])}, real, rng)
        return [*findings, AttackFinding(WORD_EDGES, view.party, about, compared)]

    return of_each(view, truth, measure)


def said_uniform(view: View) -> set[str]:
    """Names of the messages of which the program says that their receiver learns nothing."""
    if not view.agreement.sealed and view.agreement.settings.joint_layer != "secure":
        raise NotInView("masked words: joint_layer = secure")
    program = sealed if view.agreement.sealed else split
    kinds = [one for one in vars(program).values() if isinstance(one, Kind)]
    return {str(kind) for kind in kinds if kind.tells.startswith(NOTHING)}


def heard(view: View) -> Iterator[tuple[str, str, list[Tensor]]]:
    """Kind, sender and messages of masked words; also what a party can put together: its own share and the others'."""
    masked = said_uniform(view)
    links = {link: list(kept) for link, kept in view.messages.items() if str(link[0]) in masked}
    for (kind, sender, receiver), messages in links.items():
        if receiver != view.party:
            continue
        yield str(kind), sender, messages
        own = [kept for (of, by, _), kept in links.items() if (of, by) == (kind, view.party)][:1]
        others = [kept for (of, by, to), kept in links.items() if (of, to) == (kind, view.party) and by != sender]
        if own and kind not in TABLES:
            together = zip(messages, *own, *others, strict=False)
            yield (
                str(kind),
                sender,
                [reduce(_join, one) for one in together if len({(x.dtype, x.shape) for x in one}) == 1],
            )


def _join(first: Tensor, second: Tensor) -> Tensor:
    """Shares of words add up; shares of bits are joined by XOR."""
    return first ^ second if first.dtype in (torch.int32, torch.uint8) else first + second


def received_words(view: View, rng: Generator) -> dict[str, list[tuple[Tensor, Tensor]]]:
    """By sender: bytes [words, bytes of a word] of one kind of message and one shape, and fresh ones like them."""
    series = defaultdict[str, list[tuple[Tensor, Tensor]]](list)
    for kind, sender, messages in heard(view):
        if kind in TABLES:
            slots = view.agreement.nodes + _bound(view, sender)
            fresh = [torch.randperm(slots, generator=rng)[: len(one)].to(one.dtype).diff() for one in messages]
            series[sender].append((_bytes([one.diff() for one in messages]), _bytes(fresh)))
            continue
        for like in {(one.dtype, one.shape) for one in messages}:
            alike = [one for one in messages if (one.dtype, one.shape) == like]
            again = [later - earlier for earlier, later in pairwise(alike)]
            for words in (_bytes(one) for one in (alike, again) if one):
                series[sender].append((words, torch.randint(256, words.shape, generator=rng).to(torch.uint8)))
    return {sender: long for sender, all_ in series.items() if (long := [one for one in all_ if len(one[0]) >= FEWEST])}


def _bound(view: View, holder: str) -> int:
    """How many directed entries it has declared."""
    return next(one.entry_bound for one in view.agreement.holders if one.name == holder)


def _bytes(messages: Sequence[Tensor]) -> Tensor:
    words = torch.cat([one.reshape(-1) for one in messages])
    return words.contiguous().view(torch.uint8).reshape(len(words), words.element_size())


@dataclass(frozen=True, repr=False)
class Classified:
    """What a classifier says of the words of the last third, and how well it did at least on the second."""

    scores: Tensor
    real: Tensor
    chosen_by: float

    @staticmethod
    def apart(words: Tensor, fresh: Tensor, rng: Generator) -> "Classified":
        """Each byte speaks for itself, by how often it came there in the first third."""
        parts = [one[torch.randperm(len(one), generator=rng)[:MOST]].long() for one in (words, fresh)]
        thirds = [torch.tensor_split(one, PARTS) for one in parts]
        counts = [torch.stack([place.bincount(minlength=256) for place in one[0].t()]) for one in thirds]
        weight = ((counts[0] + 1) / (counts[1] + 1)).log()  # [bytes of a word, 256]
        scores = [[weight.gather(1, part.t()).sum(dim=0) for part in one[1:]] for one in thirds]
        chosen, last = (torch.cat(both) for both in zip(*scores, strict=True))
        real = [torch.arange(len(one)) < len(own) for one, own in zip((chosen, last), scores[0], strict=True)]
        return Classified(last, real[1], auc(chosen, real[0]) - DEVIATIONS * (6 * len(scores[0][0])) ** -0.5)


def words_of_nodes(view: View, rng: Generator) -> Tensor:
    """Words that belong to nodes, or to slots that may begin or end with them [nodes, columns]."""
    nodes, columns = view.agreement.nodes, list[Tensor]()
    for _, _, messages in heard(view):
        for one in messages:
            columns += [_some(rows, OF_ONE, rng) for rows in _by_node(one, nodes)]
    if not columns:
        raise NotInView("words that belong to nodes")
    return _some(torch.cat(columns, dim=1), COLUMNS, rng)


def _by_node(message: Tensor, nodes: int) -> list[Tensor]:
    """Of a message, matrices [nodes, columns]."""
    axes = [axis for axis, size in enumerate(message.shape) if size == nodes]
    rows = message.movedim(axes[0], 0) if axes else message
    if not rows.dim() or len(rows) < nodes:
        return []
    rows = rows.reshape(len(rows), -1).contiguous()
    if rows.dtype == torch.int64:
        rows = rows.view(torch.int32)  # the upper halves of words, and the lower ones
    return [rows.double()] if len(rows) == nodes else [rows[:nodes].double(), rows[-nodes:].double()]


def _some(columns: Tensor, most: int, rng: Generator) -> Tensor:
    return columns[:, torch.randperm(columns.shape[1], generator=rng)[:most]]


def _secrets(truth: Truth, holding: Holding, nodes: int) -> Tensor:
    """Columns, degrees and labels [nodes, secrets]."""
    degree = torch.bincount(holding.edge_index[1], minlength=nodes)[:nodes, None].double()
    known = [holding.x[:nodes].double(), degree]
    if truth.labels is not None:
        y = truth.labels.y
        known.append((y[:, None] == torch.arange(truth.labels.classes)).double())
    return torch.cat(known, dim=1)


def _related(words: Tensor, secrets: Tensor) -> Tensor:
    """Which columns of words have a correlation with some secret that BY_CHANCE of them would have."""
    one, other = _standard(words), _standard(secrets)
    allowed = float(ndtri(1 - BY_CHANCE / (2 * max(1, other.shape[1])))) / len(words) ** 0.5
    related: Tensor = (one.t() @ other / len(words)).abs().amax(dim=1) > allowed
    return related


def _standard(columns: Tensor) -> Tensor:
    """Of mean 0 and deviation 1; a constant column is left out."""
    deviation = columns.std(dim=0, correction=0)
    varying = columns[:, deviation > 0]
    standard: Tensor = (varying - varying.mean(dim=0)) / deviation[deviation > 0]
    return standard
