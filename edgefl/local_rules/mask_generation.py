"""Draws masks from probabilities until one fits a device, and learns the probabilities: the maths of FedMAP.

"One Training Fits All: Addressing Model-Heterogeneity Federated Learning via Architecture Probing" (FedMAP), section
4.2 and Algorithm 2. What is masked, single weights or whole channels, is a `Maskable`; here it is named arrays of
probabilities. (Another paper is called FedMap: it prunes by magnitude.)

Randomness: in draw number k (from 0) of the stream `seed`, entry i of array `name` is 1 if its candidate was and
unit(derive(seed, k, name), i) < p. A draw that is not needed costs nothing and changes no other.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from edgefl.local_rules.rule import Batch, StepResult, TrainStep
from edgefl.masks import Array, BoolArray, Mask, Weights
from edgefl.noise import derive, unit

__all__ = ["Drawn", "Flags", "Gradient", "Maskable", "generate", "logit", "sigmoid", "slopes"]

Flags = Mapping[str, BoolArray]
"""A binary mask: which entries of every named array are in."""
Floats = npt.NDArray[np.float32]
Counts = dict[str, npt.NDArray[np.uint16]]

_LARGEST_SCORE = np.float32(80)
"""Beyond this the exponential overflows a float32, and the sigmoid is 0 or 1 anyway."""


class Maskable(Protocol):
    """What a probabilistic mask is over, for one submodel and one capacity."""

    def everything(self) -> Flags:
        """Return the mask that all draws start from."""
        ...

    def fits(self, flags: Flags) -> bool:
        """Return whether a mask is within the capacity."""
        ...

    def repair(self, drawn: Flags, before: Flags, p: Weights) -> Flags:
        """Return a mask that the model supports, between `drawn` and `before`."""
        ...

    def top(self, p: Weights, within: Flags, seed: int) -> Flags:
        """Return the most probable entries that fit; ties are broken at random."""
        ...

    def mask(self, flags: Flags) -> Mask:
        """Return the mask of the model that keeps these entries."""
        ...

    def probe(self, weights: Weights, drawn: "Drawn", batch: Batch, run: TrainStep) -> tuple[StepResult, Weights]:
        """Run the masked model, and return the gradient of the loss for every entry of the mask."""
        ...


class Gradient(StrEnum):
    """How the gradient passes through the draws."""

    PAPER = "paper"
    """Eq. 7."""
    STRAIGHT_THROUGH = "straight_through"
    """m p (1 - p): each of the m draws that an entry survived passes the gradient on as if it were p itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A mask that fits, and how it was drawn."""

    flags: Flags
    candidates: Flags
    """The mask before the shrink step, or the same as `flags` without one: what a device must hold to run the mask."""
    counts: Counts
    """m of Eq. 6: how often each entry was drawn."""
    fell_back: bool
    """Whether the draws were cut short and the top entries taken."""


def generate(entries: Maskable, p: Weights, seed: int, *, max_draws: int, shrink: bool = False) -> Drawn:
    """Draw until the mask fits (Algorithm 2), and with `shrink` once more (Proposition 4.1).

    Where the paper would draw for ever (p near 1), the top entries of the rest are taken after `max_draws` and counted
    as a draw. A device that everything fits never draws; it counts as one draw of all ones, because otherwise it would
    have no say in Eq. 9.
    """
    flags = entries.everything()
    counts: Counts = {name: np.zeros(where.shape, np.uint16) for name, where in flags.items()}
    if entries.fits(flags):
        _count(counts, flags)
        return Drawn(flags, flags, counts, fell_back=False)
    draws, fits = 0, False
    while not fits and draws < max_draws:
        flags = entries.repair(_bernoulli(p, flags, seed, draws), flags, p)
        _count(counts, flags)
        draws, fits = draws + 1, entries.fits(flags)
    if not fits:
        flags = entries.top(p, flags, derive(seed, "ties"))
        _count(counts, flags)
    candidates = flags
    if shrink:
        flags = entries.repair(_bernoulli(p, flags, seed, draws), flags, p)
        _count(counts, flags)
    return Drawn(flags, candidates, counts, fell_back=not fits)


def slopes(drawn: Drawn, p: Weights, gradient: Gradient) -> dict[str, Floats]:
    """Return the factor that turns the gradient of the mask into that of s (Eq. 7).

    Only entries that survived to the last draw or the one before it have a slope.
    """
    top = max((int(count.max(initial=0)) for count in drawn.counts.values()), default=0)
    found: dict[str, Floats] = {}
    for name, count in drawn.counts.items():
        here = (count >= top - 1) & (count > 0)
        q, m = p[name][here], count[here].astype(np.float32)
        slope = np.zeros(count.shape, np.float32)
        slope[here] = m * q * (1 - q) if gradient is Gradient.STRAIGHT_THROUGH else (q**2 - q ** (2 * m + 2)) / (1 + q)
        found[name] = slope
    return found


def logit(p: Array, epsilon: float) -> Floats:
    """Return s = log(p / (1 - p)); p is kept `epsilon` away from 0 and 1, where s is infinite."""
    inside = np.clip(p.astype(np.float64), epsilon, 1 - epsilon)
    return (np.log(inside) - np.log1p(-inside)).astype(np.float32)


def sigmoid(s: Array) -> Floats:
    """Return p = 1 / (1 + exp(-s))."""
    p: Floats = np.clip(s, -_LARGEST_SCORE, _LARGEST_SCORE)
    np.exp(np.negative(p, out=p), out=p)
    p += 1
    return np.reciprocal(p, out=p)


def _bernoulli(p: Weights, candidates: Flags, seed: int, draw: int) -> Flags:
    """Return M ~ Bern(p * candidates)."""
    return {
        name: where & (unit(derive(seed, draw, name), 0, math.prod(where.shape)).reshape(where.shape) < p[name])
        for name, where in candidates.items()
    }


def _count(counts: Counts, flags: Flags) -> None:
    for name, where in flags.items():
        counts[name] += where
