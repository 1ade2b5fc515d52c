"""Which figures of a measurement are worse than in an earlier one. Pure functions over the figures of figures.py."""

import dataclasses


@dataclasses.dataclass
class Change:
    name: str
    before: object
    after: object
    spread: float | None

    @property
    def ours(self):
        return self.before.ours

    def line(self):
        words = f"{self.name}: {self.before.value:.4g} -> {self.after.value:.4g}"
        if self.before.exact:
            return words
        if self.spread is None:
            return f"{words} (each measured once: no spread is known)"
        return f"{words} (spread {self.spread:.3g})"


def loss(before, after):
    """By how much the figure is worse; negative if it is better."""
    return after.value - before.value if before.lower else before.value - after.value


def spread_of(before, after):
    """The greater of the two spreads; None if neither is known."""
    known = [spread for spread in (before.spread, after.spread) if spread is not None]
    return max(known) if known else None


def worse(before, after, once_per_cent):
    """The figures of `before` that are worse in `after` by more than their spread; where none is known, by more than so
    many per cent."""
    found = []
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            continue
        spread = spread_of(old, new)
        allowed = abs(old.value) * once_per_cent / 100 if spread is None else spread
        if loss(old, new) > allowed:
            found.append(Change(name, old, new, spread))
    return found
