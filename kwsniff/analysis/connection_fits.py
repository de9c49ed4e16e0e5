"""Which connection of a client an upstream connection belongs to, where only times of calls tell."""

from collections.abc import Sequence
from typing import Final, NamedTuple

_FAR_BETTER: Final = 2
"""How many times more slack the next best of two connections has that fit alike."""

Pairs = dict[int, int]
"""Upstream connection -> client connection."""


class Fit(NamedTuple):
    """A connection whose calls fit those of a client's connection."""

    upstream: int
    client: int
    score: tuple[int, int]
    """Calls that fit, and those of them with the same size."""
    slack: int
    """Microseconds by which the client's calls take longer, in sum."""


def choose_fits(fits: Sequence[Fit]) -> Pairs:
    """For each upstream connection the client's connection that fits alone, or far better than others. No
    other upstream connection fits that one better."""
    found: Pairs = {}
    taken: set[int] = set()
    left = sorted(fits, key=lambda fit: (*(-each for each in fit.score), fit.slack))
    while left:
        options: dict[int, list[Fit]] = {}
        best: dict[int, Fit] = {}
        for fit in left:
            options.setdefault(fit.upstream, []).append(fit)
            best.setdefault(fit.client, fit)
        for each in options.values():
            if _is_alone(each) and best[each[0].client] is each[0]:
                found[each[0].upstream] = each[0].client
                taken.add(each[0].client)
        rest = [fit for fit in left if fit.upstream not in found and fit.client not in taken]
        if len(rest) == len(left):
            break
        left = rest
    return found


def _is_alone(fits: Sequence[Fit]) -> bool:
    """Whether none of the others, which come behind it, is nearly as good as the first."""
    first, *others = fits
    alike = [fit for fit in others if fit.score == first.score]
    return not alike or alike[0].slack >= _FAR_BETTER * first.slack
