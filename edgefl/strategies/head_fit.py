"""The maths of an exact head: ridge regression from sums, and steps of logistic regression from gradients.

With the sums A = sum h h^T and B = sum h y^T of all devices (`edgefl.local_rules.feature_sums`), the head that a
central fit on all samples would find is W = (A + penalty)^-1 B. The bias is not penalised. Its penalty is chosen
without data: the sums of all devices but some are solved, and the sums of those that were left out say how large its
squared error is on their samples:

    sum |W^T h - y|^2  =  tr(W^T A W) - 2 tr(W^T B) + tr(S)

For classes, W solves y = 1/C + W h / C instead, which is one Newton step of multinomial logistic regression from W = 0:
the highest score is that of the regression, and scores are logits of the right size. `logistic_step` continues from
there: the gradient of the summed loss, preconditioned with the bound A/2 on its Hessian (Boehning, "Multinomial
Logistic Regression Algorithm", 1992), with Nesterov's extrapolation and the same penalty.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "MOST_FOLDS",
    "PENALTIES",
    "Moments",
    "best_penalty",
    "extrapolated",
    "folded",
    "logistic_step",
    "ridge",
    "total_of",
]

Doubles = npt.NDArray[np.float64]

PENALTIES = tuple(10.0**power for power in range(-7, 2))
"""What is tried, as a multiple of the mean square of a feature."""
MOST_FOLDS = 16
"""Devices are left out one by one, or in so many groups if there are more."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over samples, of one device or many."""

    gram: Doubles
    """A, the whole symmetric matrix."""
    products: Doubles
    """B."""
    squares: Doubles
    """S, by output: of classes, how many samples each has."""
    samples: float
    """The number of samples, or the weight that they count for."""

    @classmethod
    def of_triangle(cls, triangle: Doubles, products: Doubles, squares: Doubles, samples: float) -> "Moments":
        """Return the sums with A from its upper triangle, row by row."""
        size = len(products)
        gram = np.zeros((size, size))
        gram[np.triu_indices(size)] = triangle
        return cls(gram + np.triu(gram, 1).T, products, squares, samples)

    def times(self, factor: float) -> "Moments":
        """Return the sums of samples that count for so much more."""
        return Moments(self.gram * factor, self.products * factor, self.squares * factor, self.samples * factor)

    def plus(self, other: "Moments") -> "Moments":
        """Return the sums over both."""
        return Moments(
            self.gram + other.gram,
            self.products + other.products,
            self.squares + other.squares,
            self.samples + other.samples,
        )

    def minus(self, other: "Moments") -> "Moments":
        """Return the sums without those of the other."""
        return self.plus(other.times(-1.0))

    def part(self, features: npt.NDArray[np.int64]) -> "Moments":
        """Return the sums of some of the features: a block of A, and rows of B."""
        return Moments(self.gram[np.ix_(features, features)], self.products[features], self.squares, self.samples)


class _Solver:
    """Solves one set of sums for any penalty: the eigenvectors are found once."""

    def __init__(self, moments: Moments, *, bias: bool) -> None:
        self._bias = bias
        gram, products = moments.gram, moments.products
        if bias:  # a bias without penalty: centre the features and the targets
            count = max(moments.samples, 1.0)  # what the 1 adds up to, without the noise that may be on it
            self._mean, self._target = gram[:-1, -1] / count, products[-1] / count
            gram = gram[:-1, :-1] - count * np.outer(self._mean, self._mean)
            products = products[:-1] - count * np.outer(self._mean, self._target)
        self._values, self._vectors = np.linalg.eigh(gram)
        self._values = np.maximum(self._values, 0.0)  # rounding, or noise, can make them negative
        self._turned = self._vectors.T @ products
        self._scale = _mean_square(moments, len(gram))

    def weights(self, penalty: float) -> Doubles:
        """Return W: a row for every feature, and one for the bias."""
        damped = self._values + penalty * self._scale
        inverse = np.divide(1.0, damped, out=np.zeros_like(damped), where=damped > 0)
        found = self._vectors @ (inverse[:, None] * self._turned)
        if not self._bias:
            return np.asarray(found, np.float64)
        return np.vstack([found, self._target - self._mean @ found])


def ridge(moments: Moments, penalty: float, *, bias: bool, classes: bool) -> Doubles:
    """Return the head, a row for every feature and the last one for the bias, if it has one."""
    return _Solver(_scaled(moments) if classes else moments, bias=bias).weights(penalty)


def folded(devices: Iterable[Moments]) -> list[Moments]:
    """Return the sums of the groups of devices that are left out by turns: as many for any fleet."""
    folds: list[Moments] = []
    for number, one in enumerate(devices):
        if number < MOST_FOLDS:
            folds.append(one)
        else:
            folds[number % MOST_FOLDS] = folds[number % MOST_FOLDS].plus(one)
    return folds


def best_penalty(folds: Sequence[Moments], *, bias: bool) -> float:
    """Return the penalty whose head is best on the samples of devices that it was not fitted to.

    With fewer than two groups of devices there is none to leave out: the middle of all penalties.
    """
    if len(folds) < 2:
        return PENALTIES[len(PENALTIES) // 2]
    whole = total_of(folds)
    errors = dict.fromkeys(PENALTIES, 0.0)
    for fold in folds:
        solver = _Solver(whole.minus(fold), bias=bias)
        for penalty in PENALTIES:
            errors[penalty] += _squared_error(solver.weights(penalty), fold)
    return min(PENALTIES, key=lambda penalty: errors[penalty])


def total_of(moments: Sequence[Moments]) -> Moments:
    """Return the sums over all, added in their order."""
    total = moments[0]
    for one in moments[1:]:
        total = total.plus(one)
    return total


def extrapolated(head: Doubles, before: Doubles, step: int) -> Doubles:
    """Return where the next gradient is taken: Nesterov's point, from the last two heads."""
    return head + step / (step + 3) * (head - before)


def logistic_step(moments: Moments, at: Doubles, gradient: Doubles, penalty: float, *, bias: bool) -> Doubles:
    """Return the head after a step from the point `at`, where the gradient of the summed loss was taken.

    The penalty is that of the ridge regression, which is a Newton step with the Hessian A / C.
    """
    features = len(moments.gram) - bias
    damping = np.zeros(len(moments.gram))
    damping[:features] = penalty * _mean_square(moments, features) / at.shape[1] + np.finfo(float).tiny
    change = np.linalg.solve(moments.gram / 2 + np.diag(damping), gradient + damping[:, None] * at)
    return at - np.asarray(change, np.float64)


def _mean_square(moments: Moments, features: int) -> float:
    """Return the sum of the squares of a feature, the mean over all of them."""
    return float(np.mean(np.diag(moments.gram)[:features])) if features else 0.0


def _scaled(moments: Moments) -> Moments:
    """Return the sums with targets C y - 1 in place of y."""
    classes = moments.products.shape[1]
    everyone = moments.products.sum(axis=1, keepdims=True)  # every sample is of one class
    return Moments(moments.gram, classes * moments.products - everyone, moments.squares, moments.samples)


def _squared_error(head: Doubles, on: Moments) -> float:
    product = np.einsum("ij,ij->", head, on.gram @ head) - 2 * np.einsum("ij,ij->", head, on.products)
    return float(product + math.fsum(on.squares))
