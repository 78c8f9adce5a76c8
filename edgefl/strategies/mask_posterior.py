"""FedMAP's Beta distributions: the coordinator's belief about every entry of a probabilistic mask.

"One Training Fits All: Addressing Model-Heterogeneity Federated Learning via Architecture Probing" (FedMAP), sections
4.2 and 4.3. A belief is two arrays per name, alpha and beta, both lambda at first. They give the probability that masks
are drawn with, the mode of the distribution (Algorithm 1, line 4):

    p = (alpha - 1) / (alpha + beta - 2)

A device sends m, how often it drew each entry before its mask was small enough (Eq. 6). Eq. 9 adds

    alpha += m                  beta += 1 where m is less than the device's largest m, over all arrays

Ours: a belief may also begin with probabilities by magnitude, spread evenly between 0 and 1.

A device counts by its trust: less than 1 if it learned on an old model. The sums are exact in 32 bits up to 16 million
draws.
"""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.masks import Array, Weights
from edgefl.wire import Counts, Expected, Payload, check_tensors

__all__ = [
    "FirstProbabilities",
    "add_counts",
    "check_counts",
    "initial_belief",
    "magnitude_belief",
    "probabilities",
    "sent_probabilities",
]

_ALPHA, _BETA, _M, _P = "alpha/", "beta/", "m/", "p/"


class FirstProbabilities(StrEnum):
    """The probabilities before any draw."""

    HALF = "half"
    """The paper's: alpha = beta = lambda."""
    MAGNITUDE = "magnitude"
    """Ours: by the rank of an entry's magnitude, of a weight among all weights, of a channel within its group."""


def initial_belief(shapes: Mapping[str, tuple[int, ...]], strength: float) -> dict[str, Array]:
    """Return the belief before any draw: alpha = beta = lambda, which makes every probability one half."""
    names = [side + name for side in (_ALPHA, _BETA) for name in shapes]
    return {name: np.full(shapes[name.partition("/")[2]], strength, np.float32) for name in names}


def magnitude_belief(magnitudes: Mapping[str, Array], strength: float) -> dict[str, Array]:
    """Return a belief that makes the entry of rank r of n, from 0, as probable as (r + 1/2) / n, over all arrays.

    It counts as many draws as that of `initial_belief`: alpha + beta = 2 lambda. Equal entries are ranked in order of
    names and places.
    """
    names = sorted(magnitudes)
    values = np.concatenate([magnitudes[name].reshape(-1) for name in names])
    p = np.empty(values.size)
    p[np.argsort(values, kind="stable")] = (np.arange(values.size) + 0.5) / values.size
    parts = np.split(p, np.cumsum([magnitudes[name].size for name in names])[:-1])
    belief: dict[str, Array] = {}
    for name, part in zip(names, parts, strict=True):
        shaped = part.reshape(magnitudes[name].shape)
        belief[_ALPHA + name] = (1 + 2 * (strength - 1) * shaped).astype(np.float32)
        belief[_BETA + name] = (1 + 2 * (strength - 1) * (1 - shaped)).astype(np.float32)
    return belief


def probabilities(belief: Weights) -> dict[str, Array]:
    """Return p by name."""
    names = [name.removeprefix(_ALPHA) for name in belief if name.startswith(_ALPHA)]
    pairs = {name: (belief[_ALPHA + name], belief[_BETA + name]) for name in names}
    return {name: (alpha - 1) / (alpha + beta - 2) for name, (alpha, beta) in pairs.items()}


def sent_probabilities(p: Weights) -> dict[str, Array]:
    """Return p by the names under which the rule `probabilistic_masks` reads it."""
    return {_P + name: array for name, array in p.items()}


def add_counts(belief: Mapping[str, Array], counts: Mapping[str, Payload], trust: float) -> None:
    """Add the draws of one device (Eq. 9), in place. The counts were checked."""
    drawn = {name: payload.to_array() for name, payload in counts.items() if isinstance(payload, Counts)}
    most = max((int(m.max(initial=0)) for m in drawn.values()), default=0)
    for name, m in drawn.items():
        entry = name.removeprefix(_M)
        belief[_ALPHA + entry][...] += np.float32(trust) * m
        belief[_BETA + entry][...] += np.float32(trust) * (m < most)


def check_counts(tensors: Mapping[str, Payload], expected: Mapping[str, Expected], most: int) -> None:
    """Refuse anything but one count of at most `most` draws for every entry, in the forms that the rule sends."""
    check_tensors(tensors, expected)
    limits = {payload.limit for payload in tensors.values() if isinstance(payload, Counts)}
    if len(limits) > 1 or max(limits, default=0) > most:
        raise WireFormatError(
            f"the counts go up to {', '.join(map(str, sorted(limits)))}, but there are at most {most} draws",
            fix="Give all counts one limit: the largest of them.",
        )
