"""What a holder makes of its own columns before a protocol that is linear in them: a non-linear model for nothing.

Each holder fits a map to its own common rows and applies it to its own rows, old and new; nothing leaves. Bounds are
private: the map stays in the holder's own folder. How many columns come of it is public, like all numbers of columns.

    bins    quantile bins of each column, one 0/1 column for each bin; a column of two values becomes one 0/1 column,
            a constant column none
    binary  1 where a value is above 0: for words, where it matters that one is there more than how often. It does not
            look at other rows, so it is the same however columns are dealt
    none    the columns as they are
    degree  the number of the holder's own neighbours as one more column, always in bins: those of degrees grow about as
            powers do, so that the logarithm would have the same
    scaled  centred by the mean and divided by the deviation of each column that comes of it

Columns of 0 and 1 and whole numbers stay whole numbers unless they are scaled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch

from vfgnn.data.holdings import Holding
from vfgnn.errors import ConfigError, DataError
from vfgnn.settings import Sealed

MapName = Literal["none", "bins", "binary"]
BINS = 12
ABOVE_0 = float(np.finfo(np.float64).tiny)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class MappedColumn:
    """One column of the input: which one, and the lower bounds of its bins but the first; without any, as it is."""

    number: int
    bounds: tuple[float, ...] | None

    def apply(self, values: Floats) -> Floats:
        """[rows, columns that come of it]."""
        if self.bounds is None:
            return values[:, None]
        bins = np.searchsorted(np.asarray(self.bounds), values, side="right")
        if len(self.bounds) == 1:
            return bins[:, None].astype(np.float64)
        return np.asarray(bins[:, None] == np.arange(len(self.bounds) + 1), dtype=np.float64)


@dataclass(frozen=True, repr=False)
class FeatureMap:
    """A fitted map; the same rows give the same columns, whatever other rows come with them."""

    inputs: int  # columns of the holding
    degree: bool  # whether the number of neighbours comes after them
    columns: tuple[MappedColumn, ...]
    whole: bool  # whether all columns that come of it are whole numbers
    scaling: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # mean and deviation of each of these

    def apply(self, holding: Holding) -> torch.Tensor:
        """The mapped columns of all rows of `holding`: int64 if they are whole numbers by nature, else float64."""
        if holding.x.shape[1] != self.inputs:
            raise DataError(
                "features that the map was not fitted to",
                expected=f"{self.inputs} columns",
                got=str(holding.x.shape[1]),
                hint="give the new rows the columns that the first ones had",
            )
        values = _values(holding, degree=self.degree)
        blocks = [column.apply(values[:, column.number]) for column in self.columns]
        x = np.concatenate([np.zeros((len(values), 0)), *blocks], axis=1)
        if self.scaling is not None:
            centre, scale = np.asarray(self.scaling)
            x = (x - centre) / scale
        if not self.whole:
            return torch.from_numpy(x)
        if (x != np.round(x)).any():
            raise DataError("features that are not whole numbers", expected="whole numbers, as when the map was fitted")
        return torch.from_numpy(x.astype(np.int64))

    def names(self, inputs: Sequence[str]) -> tuple[str, ...]:
        """Of the columns that come of it, from those of the holding's."""
        known, found = [*inputs, "own degree"], []
        for column in self.columns:
            name, bins = known[column.number], len(column.bounds or ()) + 1
            found += [name] if bins <= 2 else [f"{name}, bin {number + 1}" for number in range(bins)]
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """For the holder's own folder."""
        columns = [{"number": c.number, "bounds": None if c.bounds is None else list(c.bounds)} for c in self.columns]
        scaling = None if self.scaling is None else [list(part) for part in self.scaling]
        return {
            "inputs": self.inputs,
            "degree": self.degree,
            "columns": columns,
            "whole": self.whole,
            "scaling": scaling,
        }

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        columns = tuple(
            MappedColumn(c["number"], None if c["bounds"] is None else tuple(map(float, c["bounds"])))
            for c in kept["columns"]
        )
        scaling = None
        if kept["scaling"] is not None:
            centre, scale = kept["scaling"]
            scaling = tuple(map(float, centre)), tuple(map(float, scale))
        made = cls(int(kept["inputs"]), bool(kept["degree"]), columns, bool(kept["whole"]), scaling)
        if not all(0 <= column.number < made.inputs + made.degree for column in columns):
            raise ValueError("a column that is not among the inputs")
        return made

    def __repr__(self) -> str:
        return f"FeatureMap(inputs={self.inputs}, degree={self.degree}, columns={len(self.columns)})"


def mapped(holding: Holding, chosen: Sealed) -> Holding:
    """The holding with the columns that the settings ask for; its own rows alone are looked at."""
    fitted = fitted_map(holding, chosen)
    return holding if fitted is None else replace(holding, x=fitted.apply(holding))


def fitted_map(holding: Holding, chosen: Sealed) -> FeatureMap | None:
    """What the settings ask for, fitted to the common rows of this holder's own data; None: columns as they are."""
    if chosen.columns == "as they are" and not chosen.own_degree and not chosen.scaled:
        return None
    name: MapName = "none" if chosen.columns == "as they are" else chosen.columns
    return fit_map(holding, name=name, bins=chosen.bins, degree=chosen.own_degree, scaled=chosen.scaled)


def fit_map(
    holding: Holding, *, name: MapName = "bins", bins: int = BINS, degree: bool = False, scaled: bool = False
) -> FeatureMap:
    """Fit to the common rows of this holder's own data."""
    if bins < 2:
        raise ConfigError("too few bins", expected="at least 2", got=str(bins))
    values = _values(holding, degree=degree)[: holding.nodes]
    inputs = int(holding.x.shape[1])
    columns = []
    for number in range(values.shape[1]):
        own = values[:, number]
        if name == "none" and number < inputs:
            columns.append(MappedColumn(number, None))
        elif name == "binary" and number < inputs:
            columns.append(MappedColumn(number, (ABOVE_0,)))
        elif len(own) and own.min() < own.max():
            columns.append(MappedColumn(number, bounds_of(own, bins)))
    whole = all(bool((values[:, c.number] == values[:, c.number].round()).all()) for c in columns if c.bounds is None)
    fitted = FeatureMap(inputs, degree, tuple(columns), whole)
    return _scaled(fitted, holding) if scaled else fitted


def bounds_of(values: Floats, bins: int) -> tuple[float, ...]:
    """Lower bounds of the bins but the first: quantiles that are values of the column, each once.

    Equal values are in one bin, so a column with few different values has fewer bins, none of them empty.
    """
    inner = np.quantile(values, np.arange(1, bins) / bins, method="higher")
    found = np.unique(inner[inner > values.min()])
    if len(found) == 0:  # nearly all values are the least one
        found = values[values > values.min()].min(keepdims=True)
    return tuple(float(bound) for bound in found)


def _values(holding: Holding, *, degree: bool) -> Floats:
    x = holding.x.to(torch.float64).numpy()
    if not degree:
        return np.asarray(x)
    return np.concatenate([x, _degrees(holding)[:, None]], axis=1)


def _degrees(holding: Holding) -> Floats:
    """Different neighbours of each row, as this holder's own edges have them in either direction."""
    size, (source, target) = holding.size, holding.edge_index.numpy()
    other = source != target
    ends = np.concatenate([source[other] * size + target[other], target[other] * size + source[other]])
    return np.bincount(np.unique(ends) // size, minlength=size).astype(np.float64)


def _scaled(fitted: FeatureMap, holding: Holding) -> FeatureMap:
    x = fitted.apply(holding)[: holding.nodes].to(torch.float64).numpy()
    deviation = x.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    return replace(fitted, whole=False, scaling=(tuple(map(float, x.mean(axis=0))), tuple(map(float, scale))))
