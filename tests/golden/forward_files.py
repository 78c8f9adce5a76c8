"""rules_feature_sums.json, rules_head_gradients.json, rules_class_prior.json: rules that only run the model forward.

What is right comes from loops over Python's floats, and from exponentials and logarithms in 50 decimal digits: the
files are the same on every machine, and are not made by the rules that they check.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from edgefl.federation.submodel_document import submodel_document
from edgefl.local_rules import LocalRule, rule_of
from edgefl.masks import Array, Mask, freeze
from edgefl.model_graph import GraphBuilder, LinearHead, linear_head
from edgefl.noise import bits, derive, symmetric
from edgefl.values import RuleSettings, dumps, to_json
from edgefl.wire import encode_mask
from tests.golden.encoding import cases_text, json_of, to_base64
from tests.golden.tiny_model import MASKS, tiny_weights

__all__ = ["TOLERANCE", "class_prior", "feature_sums", "head_gradients"]

TOLERANCE = 1e-12
"""The largest difference of a loss, as a multiple of it or of 1, and of a gradient, as one of its largest entry."""
_SEED = 2030
_SIZES = (4, 4, 1)
"""Samples of the batches."""
_DIGITS = 50
Rows = list[list[float]]


def _without_bias(features: int) -> Mask:
    builder = GraphBuilder("without bias", channels=4)
    builder.linear("head", builder.linear("hidden", builder.input, features), 3, bias=False, head=True)
    return Mask.of(builder.finish(), trained=[])


@cache
def _masks() -> dict[str, Mask]:
    """Return masks by name: the head of the first two has the bias `__proto__`."""
    known = {"whole": MASKS["whole"], "narrow": MASKS["narrow"]}
    frozen = {name: freeze(mask, mask.trained) for name, mask in known.items()}
    return frozen | {"no bias": _without_bias(4), "no bias, 70 features": _without_bias(70)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A case of sums: a rule with its settings, a head, and batches of features."""

    name: str
    mask: str = "whole"
    settings: Mapping[str, Any] = field(default_factory=dict)
    scale: float = 1.0
    """The size of the smallest features; others are up to 1024 times as large, so that sums are rounded."""
    brought: bool = True
    """Whether the plan brings a head."""


def feature_sums() -> str:
    """Return the text of rules_feature_sums.json."""
    passes = [
        Pass(name="a head with a bias"),
        Pass(name="a head with a bias, two features", mask="narrow"),
        Pass(name="a head without bias", mask="no bias"),
        Pass(name="clipped", settings={"clip": 1.5}, scale=2.0**-6),
        Pass(name="clipped, a number without a decimal point", settings={"clip": 1}, mask="narrow", scale=2.0**-6),
        Pass(
            name="clipped, more than 64 features, no bias",
            settings={"clip": 0.5},
            mask="no bias, 70 features",
            scale=2.0**-9,
        ),
        Pass(name="a clip above all norms", settings={"clip": 1e9, "noise": 0}, mask="narrow"),
        Pass(name="subnormal features", scale=2.0**-142),
    ]
    return _text(passes, lambda case: _sums_case("feature_sums", case))


def head_gradients() -> str:
    """Return the text of rules_head_gradients.json."""
    passes = [
        Pass(name="a head with a bias", scale=2.0**-6),
        Pass(name="the head that was downloaded", mask="narrow", brought=False, scale=2.0**-6),
        Pass(name="a head without bias", mask="no bias", scale=2.0**-6),
        Pass(name="clipped", settings={"clip": 1.5}, scale=2.0**-6),
        Pass(
            name="clipped, more than 64 features, no bias",
            settings={"clip": 1},
            mask="no bias, 70 features",
            scale=2.0**-7,
        ),
        Pass(name="scores beyond the exponentials", scale=8.0),
    ]
    return _text(passes, lambda case: _sums_case("head_gradients", case))


def _text(cases: Sequence[Any], made: Any) -> str:
    starts = {name: _start(mask) for name, mask in _masks().items() if any(case.mask == name for case in cases)}
    return cases_text([made(case) for case in cases], tolerance=TOLERANCE, starts=starts)


def _start(mask: Mask) -> dict[str, Any]:
    """Return what a device downloads, of the weights the head alone."""
    weights = {name: json_of(array) for name, array in _head_weights(mask).items()}
    return {"model": dumps(mask.graph), "mask": mask.digest, "mask_body": to_base64(encode_mask(mask)), "head": weights}


def _head_of(mask: Mask) -> LinearHead:
    head = linear_head(mask.graph)
    assert head is not None
    return head


def _head_weights(mask: Mask) -> dict[str, Array]:
    head, weights = _head_of(mask), tiny_weights(mask)
    return {name: weights[name] for name in (head.weight, head.bias) if name is not None}


def _drawn(mask: Mask, case: Pass) -> list[tuple[Array, list[int]]]:
    """Return the batches of a case: features of many magnitudes, and labels."""
    head = _head_of(mask)
    width, found, start = mask.shapes[head.weight][1], [], 0
    for size in _SIZES:
        draws = symmetric(derive(_SEED, case.name, "features"), start * width, size * width, 1.0)
        powers = bits(derive(_SEED, case.name, "powers"), start * width, size * width) % np.uint64(6)
        sizes = bits(derive(_SEED, case.name, "sizes"), start, size) % np.uint64(6)
        exact = (powers.reshape(size, width) + sizes[:, None]).astype(np.float64)
        features = draws.reshape(size, width) * (case.scale * 2.0**exact)
        labels = bits(derive(_SEED, case.name, "labels"), start, size) % np.uint64(head.outputs)
        found.append((features.astype(np.float32), [int(label) for label in labels]))
        start += size
    return found


def _sums_case(rule: str, case: Pass) -> dict[str, Any]:
    settings, mask = RuleSettings(name=rule, settings=case.settings), _masks()[case.mask]
    chosen, batches = rule_of(settings), _drawn(mask, case)
    head, extras = _head_weights(mask), dict[str, Array]()
    if rule == "head_gradients" and case.brought:
        extras = {
            name: symmetric(derive(_SEED, case.name, name), 0, array.size, 2.0).reshape(array.shape)
            for name, array in head.items()
        }
    rows = [_rows(features, _head_of(mask), case.settings.get("clip")) for features, _ in batches]
    scores = [_scores(batch, mask, head | extras) for batch in rows]
    labels = [batch_labels for _, batch_labels in batches]
    losses = [_loss(*batch) for batch in zip(scores, labels, strict=True)]
    samples = [
        (row, numbers, label)
        for batch in zip(rows, scores, labels, strict=True)
        for row, numbers, label in zip(*batch, strict=True)
    ]
    sums = _sums(samples, _head_of(mask).outputs) if rule == "feature_sums" else _gradient(samples)
    return {
        **_asked(case.name, settings, case.mask, chosen, mask),
        **({"extras": {name: json_of(array) for name, array in extras.items()}} if extras else {}),
        "batches": [{"features": json_of(features), "labels": own} for features, own in batches],
        "losses": losses,
        "sums": {name: json_of(np.array(numbers, np.float64)) for name, numbers in sums.items()},
    }


def _asked(name: str, settings: RuleSettings, start: str, rule: LocalRule, mask: Mask) -> dict[str, Any]:
    document = to_json(submodel_document(rule.trains(mask), rule.sends(mask)))
    said = {"name": settings.name, "settings": dict(settings.settings)}
    return {"name": name, "rule": said, "start": start, "submodel": document}


def _rows(features: Array, head: LinearHead, clip: float | None) -> Rows:
    """Return the features in double precision, clipped, with the 1 of the bias."""
    found = []
    for row in features.tolist():
        lanes = [0.0] * 64
        for index, feature in enumerate(row):
            lanes[index % 64] += feature * feature
        norm = math.sqrt(_in_order(lanes))
        factor = 1.0 if clip is None or norm <= clip else clip / norm
        found.append([feature * factor for feature in row] + [1.0] * (head.bias is not None))
    return found


def _in_order(numbers: Iterable[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def _sums(samples: Sequence[tuple[list[float], Any, int]], outputs: int) -> dict[str, Any]:
    """Return the three sums, of plain loops."""
    size = len(samples[0][0])
    gram, products = [[0.0] * size for _ in range(size)], [[0.0] * outputs for _ in range(size)]
    squares = [0.0] * outputs
    for row, _, label in samples:
        for i in range(size):
            for j in range(size):
                gram[i][j] += row[i] * row[j]
            products[i][label] += row[i]
        squares[label] += 1.0
    triangle = [gram[i][j] for i in range(size) for j in range(i, size)]
    return {"sums/gram": triangle, "sums/products": products, "sums/squares": squares}


def _scores(rows: Rows, mask: Mask, tensors: Mapping[str, Array]) -> list[list[Decimal]]:
    """Return what a head makes of samples, exactly."""
    head = _head_of(mask)
    matrix, shift = tensors[head.weight].tolist(), [0.0] * head.outputs
    if head.bias is not None:
        shift = tensors[head.bias].tolist()
    with localcontext(prec=_DIGITS):
        return [
            [
                sum((Decimal(h) * Decimal(w) for h, w in zip(row, weights, strict=False)), Decimal(start))
                for weights, start in zip(matrix, shift, strict=True)
            ]
            for row in rows
        ]


def _loss(scores: list[list[Decimal]], labels: list[int]) -> float:
    """Return the mean cross-entropy of a batch."""
    with localcontext(prec=_DIGITS):
        losses = [
            sum(((score - row[label]).exp() for score in row), Decimal(0)).ln()
            for row, label in zip(scores, labels, strict=True)
        ]
        return float(sum(losses, Decimal(0)) / len(losses))


def _gradient(samples: Sequence[tuple[list[float], list[Decimal], int]]) -> dict[str, Any]:
    """Return the sum of gradients: h (softmax(scores) - y)^T."""
    size, outputs = len(samples[0][0]), len(samples[0][1])
    with localcontext(prec=_DIGITS):
        total = [[Decimal(0)] * outputs for _ in range(size)]
        for row, scores, label in samples:
            odds = [(score - max(scores)).exp() for score in scores]
            errors = [odd / sum(odds) - (output == label) for output, odd in enumerate(odds)]
            for i, feature in enumerate(row):
                for output, error in enumerate(errors):
                    total[i][output] += Decimal(feature) * error
        return {"sums/gradient": [[float(entry) for entry in row] for row in total]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """A case of a personal head: the labels of a device, and the shares of the classes of all."""

    name: str
    labels: tuple[int, ...]
    shares: tuple[float, float, float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    mask: str = "whole"


def class_prior() -> str:
    """Return the text of rules_class_prior.json."""
    cases = [
        Shares(name="other shares", labels=(0, 0, 1, 2, 0, 0, 2), shares=(0.25, 0.5, 0.25), mask="narrow"),
        Shares(name="equal shares", labels=(0, 1, 1, 2), shares=(0.25, 0.5, 0.25)),
        Shares(name="a class that is not here", labels=(0, 2, 2), shares=(0.3, 0.3, 0.4)),
        Shares(name="a class that nobody has", labels=(0, 0, 2), shares=(0.7, 0.0, 0.3)),
        Shares(
            name="another least share",
            labels=(1, 1, 1, 1, 2),
            shares=(0.001, 0.9, 0.099),
            settings={"least_share": 0.01},
        ),
    ]
    return _text(cases, _prior_case)


def _prior_case(case: Shares) -> dict[str, Any]:
    settings, mask = RuleSettings(name="class_prior", settings=case.settings), _masks()[case.mask]
    bias = str(_head_of(mask).bias)
    shares, least = np.array(case.shares, np.float32), case.settings.get("least_share", 1e-6)
    shifted = []
    for label, (start, share) in enumerate(zip(_head_weights(mask)[bias].tolist(), shares.tolist(), strict=True)):
        own = max(case.labels.count(label) / len(case.labels), least)
        shifted.append(start + float(Decimal(own / max(share, least)).ln()))
    return {
        **_asked(case.name, settings, case.mask, rule_of(settings), mask),
        "extras": {"shares": json_of(shares)},
        "batches": [{"labels": list(case.labels[:3])}, {"labels": list(case.labels[3:])}],
        "own": {bias: json_of(np.array(shifted, np.float32))},
    }
