"""A made-up fraud case for three organisations: python examples/fraud/generate.py --out DIR

A bank, a payment network and a telecom know mostly the same customers by their account numbers. Fraud happens in small
rings (mules and their organisers), and some fraudsters are alone. Every fraudster stands out a little in the columns of
each organisation, as many honest customers do in those of one; ring members transfer to, pay beside and call each other
now and then, amid many ordinary edges and honest families and clubs. So one sees the money, another the cards, the
third the phones, and none of them enough.

    bank/      accounts.csv     transfers.csv     fraud.csv (of the accounts that were ever reviewed)
    payments/  cards.csv        co_payments.csv
    telecom/   subscribers.csv  calls.csv

Nothing here is taken from real people. The same seed gives the same files. The generator was fixed before any model was
tried: only rates, degrees and overlaps were looked at.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Draw = np.random.Generator

FRAUD_RATE = 0.04
IN_RINGS = 0.75  # of the fraudsters
RING_SIZES = (4, 9)
HONEST_SIZES = (0.30, 0.20, 0.20, 0.15, 0.09, 0.04, 0.02)  # of a family or club of 1, 2, ... 7
STANDS_OUT = 0.12  # of the honest customers, at each organisation: travellers, traders, night workers
REVIEWED = 0.7
REGIONS, AGE_BANDS = 8, 4
OWN_CUSTOMERS = 0.03  # of the payment network and of the telecom, unknown to the bank


@dataclass(frozen=True)
class Population:
    """Everybody, the bank's customers first."""

    ids: npt.NDArray[np.str_]
    fraud: Mask
    circle: Numbers  # a ring, a family or a club: who is close to whom
    group: Numbers  # region and age band
    banked: Mask


@dataclass(frozen=True)
class Habits:
    """How the edges of one organisation arise."""

    ordinary: float  # edges drawn per customer
    among_honest: float  # probability of an edge between two of a family or club
    in_ring: float  # and between two of a ring
    spread: float = 0.8  # of the logarithm of how active and how popular one is
    at_home: float = 0.7  # share of edges within the same region and age band


def main() -> None:
    """Write the three folders."""
    parser = argparse.ArgumentParser(description="A made-up fraud case for three organisations.")
    parser.add_argument("--out", type=Path, required=True, help="folder for bank/, payments/ and telecom/")
    parser.add_argument("--accounts", type=int, default=6000, help="customers of the bank")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = np.random.default_rng(given.seed)
    people = population(draw, given.accounts)
    write_bank(draw, people, given.out / "bank")
    write_payments(draw, people, given.out / "payments")
    write_telecom(draw, people, given.out / "telecom")
    print(f"{given.accounts} bank accounts, {people.fraud.sum()} of them fraudulent, in {given.out}")


def population(draw: Draw, accounts: int) -> Population:
    """Who there is, who commits fraud, and who is close to whom."""
    size = accounts + 2 * round(OWN_CUSTOMERS * accounts)
    rings = max(1, round(FRAUD_RATE * IN_RINGS * accounts / np.mean(RING_SIZES)))
    ring_sizes = draw.integers(RING_SIZES[0], RING_SIZES[1] + 1, rings)
    alone = round(FRAUD_RATE * (1 - IN_RINGS) * accounts)
    honest_sizes = 1 + draw.choice(len(HONEST_SIZES), size, p=HONEST_SIZES)
    sizes = np.concatenate([ring_sizes, np.ones(alone, dtype=np.int64), honest_sizes])
    fraudsters = int(ring_sizes.sum()) + alone
    # Fraudsters are customers of the bank; everybody else comes in any order.
    order = draw.permutation(accounts)
    order = np.concatenate([order[:fraudsters], draw.permutation(np.append(order[fraudsters:], range(accounts, size)))])
    circle, fraud = np.empty(size, dtype=np.int64), np.zeros(size, dtype=bool)
    circle[order] = np.repeat(np.arange(len(sizes)), sizes)[:size]
    fraud[order[:fraudsters]] = True
    numbers = draw.choice(9_000_000, size, replace=False) + 1000
    ids = np.char.add("ACC", np.char.zfill(numbers.astype(str), 7))
    region = draw.integers(REGIONS, size=int(circle.max()) + 1)[circle]  # a family lives in one place
    group = region * AGE_BANDS + draw.integers(AGE_BANDS, size=size)
    return Population(ids=ids, fraud=fraud, circle=circle, group=group, banked=np.arange(size) < accounts)


def conspicuous(draw: Draw, people: Population) -> Floats:
    """How much each stands out in the columns of one organisation: about 1 for a fraudster, 0 for most others."""
    amount = draw.gamma(4.0, 0.25, len(people.ids))
    return np.where(people.fraud | (draw.random(len(people.ids)) < STANDS_OUT), amount, 0.0)


def customers(draw: Draw, people: Population, share: float, *, own: int) -> Mask:
    """Whom an organisation knows: a share of the bank's customers, and half of the others."""
    others = np.flatnonzero(~people.banked)
    known = people.banked & (draw.random(len(people.ids)) < share)
    known[np.array_split(others, 2)[own]] = True
    return known


def edges(draw: Draw, people: Population, known: Mask, habits: Habits) -> tuple[Numbers, Numbers]:
    """Pairs of customers, several of some: ordinary ones, and those of families, clubs and rings."""
    size = len(people.ids)
    count = round(habits.ordinary * size)
    active, popular = draw.lognormal(0.0, habits.spread, (2, size))
    source = draw.choice(size, count, p=active / active.sum())
    # Partners by popularity: a point on the line of all popularities, within one's own group if at home.
    order = np.argsort(people.group, kind="stable")
    line = np.concatenate([[0.0], np.cumsum(popular[order])])
    bounds = line[np.searchsorted(people.group[order], np.arange(REGIONS * AGE_BANDS + 1))]
    home = draw.random(count) < habits.at_home
    low = np.where(home, bounds[people.group[source]], 0.0)
    high = np.where(home, bounds[people.group[source] + 1], line[-1])
    point = draw.uniform(low, high)
    target = order[np.clip(np.searchsorted(line, point, side="right") - 1, 0, size - 1)]
    close = close_pairs(draw, people, habits)
    source, target = np.append(source, close[0]), np.append(target, close[1])
    kept = known[source] & known[target] & (source != target)
    return source[kept], target[kept]


def close_pairs(draw: Draw, people: Population, habits: Habits) -> Numbers:
    """Some of the pairs within families, clubs and rings, in either direction, each once to three times."""
    order = np.argsort(people.circle, kind="stable")
    steps = range(1, max(RING_SIZES[1], len(HONEST_SIZES)))
    pairs = np.concatenate([np.stack([order[:-step], order[step:]]) for step in steps], axis=1)
    pairs = pairs[:, people.circle[pairs[0]] == people.circle[pairs[1]]]
    likely = np.where(people.fraud[pairs[0]], habits.in_ring, habits.among_honest)
    pairs = pairs[:, draw.random(pairs.shape[1]) < likely]
    pairs = np.where(draw.random(pairs.shape[1]) < 0.5, pairs, pairs[::-1])
    return np.repeat(pairs, draw.integers(1, 4, pairs.shape[1]), axis=1)


def per_pair(source: Numbers, target: Numbers, amount: Floats) -> tuple[Numbers, Numbers, Floats]:
    """Amounts added up by pair."""
    pairs, at = np.unique(np.stack([source, target]), axis=1, return_inverse=True)
    return pairs[0], pairs[1], np.bincount(at.reshape(-1), amount).astype(np.float64)


def write_bank(draw: Draw, people: Population, folder: Path) -> None:
    """The money: accounts, transfers, and which accounts were found fraudulent or cleared."""
    size, known, t = len(people.ids), people.banked, conspicuous(draw, people)
    income = draw.lognormal(7.9, 0.45, size)
    accounts = {
        "account": people.ids,
        "age_days": np.clip(draw.gamma(2.5, 620, size) * np.exp(-0.45 * t), 20, 9000).astype(np.int64),
        "balance": np.round(income * draw.lognormal(0.3, 0.7, size) * np.exp(-0.35 * t), 2),
        "monthly_income": np.round(income, 2),
        "product": pick(draw, ["current", "savings", "business"], [0.62, 0.26, 0.12], [0.70, 0.14, 0.16], t),
        "country": pick(draw, ["FR", "DE", "ES", "IT", "NL"], [0.4, 0.25, 0.15, 0.12, 0.08], [0.2] * 5, t),
        "digital_logins": draw.poisson(draw.gamma(4.0, 4.0, size) * np.exp(0.3 * t)),
        "new_payees": draw.poisson(draw.gamma(2.0, 1.2, size) + 1.1 * t),
        "cash_share": share(draw, -1.6 + 0.55 * t, 0.9),
        "dormant_months": draw.poisson(draw.gamma(1.0, 1.0, size)),
    }
    write(draw, folder / "accounts.csv", accounts, known)
    source, target = edges(draw, people, known, Habits(ordinary=2.4, among_honest=0.5, in_ring=0.5))
    source, target, amount = per_pair(source, target, draw.lognormal(4.6, 1.0, len(source)))
    transfers = {"from": people.ids[source], "to": people.ids[target], "amount": np.round(amount, 2)}
    write(draw, folder / "transfers.csv", transfers)
    day = np.datetime64("2024-01-01") + draw.integers(0, 540, size)
    reviewed = known & (draw.random(size) < REVIEWED)
    fraud = {"account": people.ids, "fraud": people.fraud.astype(np.int64), "reviewed_on": day}
    write(draw, folder / "fraud.csv", fraud, reviewed)


def write_payments(draw: Draw, people: Population, folder: Path) -> None:
    """The cards, and who paid at the same terminal within minutes."""
    size, t = len(people.ids), conspicuous(draw, people)
    known = customers(draw, people, 0.92, own=0)
    cards = {
        "account": people.ids,
        "card_age": np.clip(draw.gamma(2.5, 14, size) * np.exp(-0.4 * t), 1, 180).astype(np.int64),  # months
        "online_share": share(draw, -0.4 + 0.5 * t, 1.0),
        "chargebacks": draw.poisson(draw.gamma(1.0, 0.35, size) + 0.4 * t),
        "merchants": draw.poisson(draw.gamma(4.0, 3.0, size) * np.exp(0.28 * t)),
        "night_share": share(draw, -2.0 + 0.5 * t, 0.9),
        "declined_share": share(draw, -2.8 + 0.55 * t, 0.9),
        "average_ticket": np.round(draw.lognormal(3.4, 0.5, size), 2),
        "contactless_share": share(draw, np.full(size, 0.6), 0.9),
    }
    write(draw, folder / "cards.csv", cards, known)
    source, target = edges(draw, people, known, Habits(ordinary=2.8, among_honest=0.4, in_ring=0.45, spread=0.9))
    first, second = np.minimum(source, target), np.maximum(source, target)
    first, second, times = per_pair(first, second, np.float64(1) + draw.poisson(0.8, len(first)).astype(np.float64))
    together = {"account_a": people.ids[first], "account_b": people.ids[second], "times": times.astype(np.int64)}
    write(draw, folder / "co_payments.csv", together)


def write_telecom(draw: Draw, people: Population, folder: Path) -> None:
    """The phones: contracts by the account that pays for them, with gaps, and calls."""
    size, t = len(people.ids), conspicuous(draw, people)
    known = customers(draw, people, 0.88, own=1)
    subscribers = {
        "account": people.ids,
        "contract": pick(draw, ["prepaid", "postpaid"], [0.28, 0.72], [0.55, 0.45], t),
        "sim_age": np.clip(draw.gamma(2.2, 500, size) * np.exp(-0.45 * t), 1, 6000).astype(np.int64),  # days
        "sim_changes": draw.poisson(draw.gamma(1.5, 0.35, size) + 0.5 * t),
        "roaming_share": gaps(draw, share(draw, -2.4 + 0.5 * t, 1.0), 0.08),
        "night_calls": draw.poisson(draw.gamma(2.0, 2.5, size) + 2.2 * t),
        "data_gb": gaps(draw, np.round(draw.lognormal(2.2, 0.7, size), 1), 0.05),
        "short_call_share": share(draw, -1.2 + 0.5 * t, 0.9),
        "top_ups": draw.poisson(draw.gamma(1.5, 1.5, size)),
    }
    write(draw, folder / "subscribers.csv", subscribers, known)
    source, target = edges(draw, people, known, Habits(ordinary=2.8, among_honest=0.6, in_ring=0.45))
    source, target, minutes = per_pair(source, target, draw.gamma(1.5, 6.0, len(source)))
    calls = {"caller": people.ids[source], "callee": people.ids[target], "minutes": np.round(minutes, 1)}
    write(draw, folder / "calls.csv", calls)


def share(draw: Draw, centre: Floats, spread: float) -> Floats:
    """A number from 0 to 1: a normal one through the logistic function."""
    return np.round(1 / (1 + np.exp(-draw.normal(centre, spread))), 3)


def pick(draw: Draw, words: list[str], usual: list[float], other: list[float], t: Floats) -> npt.NDArray[np.str_]:
    """A word in each row, by the usual rates, or by the other ones the more one stands out."""
    rates = np.where((draw.random(len(t)) < t / 2)[:, None], np.cumsum(other), np.cumsum(usual))
    at = (draw.random(len(t))[:, None] > rates).sum(axis=1)
    chosen: npt.NDArray[np.str_] = np.array(words)[np.minimum(at, len(words) - 1)]
    return chosen


def gaps(draw: Draw, values: Floats, rate: float) -> Floats:
    """The same with some missing."""
    return np.where(draw.random(len(values)) < rate, np.nan, values)


def write(draw: Draw, path: Path, columns: Mapping[str, npt.NDArray[np.generic]], rows: Mask | None = None) -> None:
    """A CSV of some rows, in an order of its own; NaN becomes an empty field."""
    length = len(next(iter(columns.values())))
    order = draw.permutation(np.arange(length) if rows is None else np.flatnonzero(rows))
    table = pa.table({name: pa.array(values[order], from_pandas=True) for name, values in columns.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as file:
        file.write((",".join(columns) + "\n").encode())
        pyarrow.csv.write_csv(table, file, plain)


if __name__ == "__main__":
    main()
