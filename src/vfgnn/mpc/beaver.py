"""Products of two shared matrices, and of shared values element by element (Beaver 1991), any number of holders.

  1. dealer: shares of uniform A, B and of C = A B
  2. all holders open E = X - A and F = Y - B
  3. each holder: [Z] = [C] + E [B] + [A] F, and one of them adds E F
  Z = A B + (X - A) B + A (Y - B) + (X - A) (Y - B) = X Y, exactly in the ring.
Each function is one round, for any number of products. Words opened: those of X and of Y; the correction is as large as
Z. Fraction bits add up: truncate the result. Masks are fresh each time, also when a matrix has been multiplied before.
"""

import torch

from vfgnn.mpc.shared import Arithmetic, Triple, matmul

Factors = tuple[torch.Tensor, torch.Tensor]


def matrix_products(arithmetic: Arithmetic, *factors: Factors) -> list[torch.Tensor]:
    """Shares of X Y [m, n] for each pair of shares of X [m, k] and Y [k, n].

    Reveals: nothing; E and F are uniform to all holders.
    """
    deal = arithmetic.material.matrix_triple
    triples = [deal(x.shape[0], x.shape[1], y.shape[1]) for x, y in factors]
    results = []
    for triple, (e, f) in zip(triples, _open_masked(arithmetic, factors, triples), strict=True):
        b = arithmetic.plus_public(triple.b, f)  # E ([B] + F) is one product instead of two
        results.append(matmul(e, b).add_(matmul(triple.a, f)).add_(triple.c))
    return results


def products(arithmetic: Arithmetic, *factors: Factors) -> list[torch.Tensor]:
    """Shares of X * Y, element by element, for each pair of shares of X and Y of one shape.

    Reveals: nothing; E and F are uniform to all holders.
    """
    triples = [arithmetic.material.product_triple(tuple(x.shape)) for x, _ in factors]
    results = []
    for triple, (e, f) in zip(triples, _open_masked(arithmetic, factors, triples), strict=True):
        b = arithmetic.plus_public(triple.b, f)
        results.append((e * b).add_(triple.a * f).add_(triple.c))
    return results


def _open_masked(arithmetic: Arithmetic, factors: tuple[Factors, ...], triples: list[Triple]) -> list[Factors]:
    """E and F of every product.

    Reveals: nothing; each is the secret minus a mask that is used here only.
    """
    pairs = [pair for (x, y), triple in zip(factors, triples, strict=True) for pair in ((x, triple.a), (y, triple.b))]
    opened = arithmetic.opening.open(*(_masked(share, mask) for share, mask in pairs))
    return list(zip(opened[::2], opened[1::2], strict=True))


def _masked(share: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if share.shape != mask.shape:  # torch would stretch the mask over several values, and they could be compared
        raise ValueError(f"factors that do not fit: {list(share.shape)} where {list(mask.shape)} was expected")
    return share - mask
