"""Statistics of errors and rankings, as pure functions of numbers. An error is predicted over measured, less one."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

Numbers = Sequence[float]

MIN_LAYOUTS: Final = 5
"""Distinct layouts that a sweep needs before its ranking says anything."""


def errors(predicted: Numbers, measured: Numbers) -> list[float]:
    """p/m - 1 of each pair."""
    return [p / m - 1 for p, m in zip(predicted, measured, strict=True)]


def mape(relative: Numbers) -> float | None:
    """Mean absolute error. None of nothing."""
    return fmean(abs(error) for error in relative) if relative else None


def median_error(relative: Numbers) -> float | None:
    """Median absolute error. None of nothing."""
    return median(abs(error) for error in relative) if relative else None


def bias(relative: Numbers) -> float | None:
    """Mean error with its sign: above 0 the prediction is too large. None of nothing."""
    return fmean(relative) if relative else None


def spearman(predicted: Numbers, measured: Numbers) -> float:
    """Correlation of the ranks, equal values sharing the mean of theirs (Spearman 1904). 0 where one side is constant.

    rho = cov(rank p, rank m) / (sd(rank p) · sd(rank m))
    """
    p, m = _ranks(predicted), _ranks(measured)
    mean = (len(p) + 1) / 2
    covariance = sum((a - mean) * (b - mean) for a, b in zip(p, m, strict=True))
    spread = (sum((a - mean) ** 2 for a in p) * sum((b - mean) ** 2 for b in m)) ** 0.5
    return covariance / spread if spread else 0.0


def kendall(predicted: Numbers, measured: Numbers) -> float:
    """Tau-b: pairs in the same order less those in the opposite one, without ties (Kendall 1945). 0 if one is flat."""
    agree = disagree = only_p = only_m = 0
    for one in range(len(predicted)):
        for other in range(one):
            p, m = _sign(predicted[one] - predicted[other]), _sign(measured[one] - measured[other])
            agree += p * m > 0
            disagree += p * m < 0
            only_p += p != 0 and m == 0
            only_m += m != 0 and p == 0
    ordered = agree + disagree
    spread = ((ordered + only_p) * (ordered + only_m)) ** 0.5
    return (agree - disagree) / spread if spread else 0.0


def regret(predicted: Numbers, measured: Numbers) -> float:
    """How much slower the first pick is than the best: m[argmin p] / min m - 1. Equal picks share the mean."""
    best = min(predicted)
    picks = [m for p, m in zip(predicted, measured, strict=True) if p == best]
    return fmean(picks) / min(measured) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Confusion:
    """Labels against predictions of running out of memory. caught: both say so; missed: it did and we said it fits."""

    caught: int
    missed: int
    false_alarms: int
    fitting: int

    @property
    def labels(self) -> int:
        """Runs with a label, whichever."""
        return self.caught + self.missed + self.false_alarms + self.fitting

    @property
    def precision(self) -> float | None:
        """Of those we said run out of memory, those that did."""
        said = self.caught + self.false_alarms
        return self.caught / said if said else None

    @property
    def recall(self) -> float | None:
        """Of those that ran out of memory, those we said would."""
        died = self.caught + self.missed
        return self.caught / died if died else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None without a run that ran out of memory."""
        if self.caught + self.missed == 0:
            return None
        return 2 * self.caught / (2 * self.caught + self.missed + self.false_alarms)

    @property
    def false_fits(self) -> float | None:
        """Of the runs labelled out of memory, those we said fit: 1 - recall."""
        return None if self.recall is None else 1 - self.recall


def confusion(predicted: Sequence[bool], labelled: Sequence[bool]) -> Confusion:
    """True: ran out of memory."""
    pairs = list(zip(predicted, labelled, strict=True))
    return Confusion(
        caught=pairs.count((True, True)),
        missed=pairs.count((False, True)),
        false_alarms=pairs.count((True, False)),
        fitting=pairs.count((False, False)),
    )


def mean_of(values: Sequence[float | None]) -> float | None:
    """Mean of those that are known. None where none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def median_of(values: Sequence[float | None]) -> float | None:
    """Median of those that are known. None where none is."""
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _ranks(values: Numbers) -> list[float]:
    """1 for the smallest; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in range(start, end + 1):
            ranks[order[place]] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
