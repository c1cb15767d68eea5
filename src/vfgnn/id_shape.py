"""How a holder's ids are written, as its card and the federation file say it: public, and next to nothing."""

from typing import Self

from vfgnn.settings import Count, Public


class IdShape(Public):
    """How a holder's ids are written: no id, and no count. Others see by it that theirs have lost leading zeros."""

    digits: bool  # whether all are whole numbers
    leading_zeros: bool  # whether some begin with 0
    longest: Count  # characters

    def has_lost_zeros_of(self, other: Self) -> bool:
        """Whether these may be the other's after a program took them for numbers."""
        here = self.digits and not self.leading_zeros
        return here and other.digits and other.leading_zeros and self.longest <= other.longest
