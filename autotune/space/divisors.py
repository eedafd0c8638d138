"""Divisors, and how a sentence lists them."""

from collections.abc import Iterable


def divisors(number: int) -> tuple[int, ...]:
    """All divisors in ascending order: 12 -> 1, 2, 3, 4, 6, 12."""
    low = [candidate for candidate in range(1, int(number**0.5) + 1) if number % candidate == 0]
    high = [number // candidate for candidate in reversed(low) if candidate * candidate != number]
    return (*low, *high)


def one_of(values: Iterable[object]) -> str:
    """Words for a choice: "1", "1 or 2", "1, 2 or 4"; "nothing" if there are none."""
    words = [str(value) for value in values]
    if len(words) < 2:
        return words[0] if words else "nothing"
    return f"{', '.join(words[:-1])} or {words[-1]}"


def nearest_multiples(number: int, step: int) -> tuple[int, ...]:
    """The positive multiples of `step` next to `number`, below and above: (256, 14) -> 252, 266."""
    below = number // step * step
    return tuple(multiple for multiple in (below, below + step) if multiple > 0)
