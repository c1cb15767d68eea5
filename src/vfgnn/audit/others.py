"""Whose secrets an attack is after: those of every other holder whose data the auditor has."""

from collections.abc import Callable

from vfgnn.audit.attack import AttackFinding
from vfgnn.audit.views import NotInView, Truth, View
from vfgnn.data.holdings import Holding

About = Callable[[str, Holding], list[AttackFinding]]


def of_each(view: View, truth: Truth, measure: About) -> list[AttackFinding]:
    """Findings about each of them. What is missing for all of them is missing; for some, the others are measured."""
    found: list[AttackFinding] = []
    lack = NotInView("the data of another holder")
    for name, holding in truth.holdings.items():
        if name == view.party:
            continue
        try:
            found += measure(name, holding)
        except NotInView as missing:
            lack = missing
    if not found:
        raise lack
    return found
