"""Rounds for tests: random models and what devices made of their parts of them, and the slow, obvious average."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from edgefl.local_rules.sgd import Codec
from edgefl.masks import Array, Mask, Weights, gather
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.strategies import ClientUpdate, Model, Overlap, RoundContext
from edgefl.values import RuleSettings
from edgefl.wire import Dense, Payload, Sparse
from tests.masks.test_slicing import held_coordinates, kept_coordinates
from tests.random_models import masks, model_graphs
from tests.values.samples import RESULT

ROUND_CONTEXT = RoundContext(round=0, rounds=10, seed=1)


def random_weights(graph: ModelGraph, seed: int, scale: float = 1.0) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    return {t.name: (scale * generator.standard_normal(t.shape)).astype(t.dtype.value) for t in graph.tensors}


def client_update(
    mask: Mask,
    base: Weights,
    new: Weights,
    *,
    samples: int = 10,
    trust: float = 1.0,
    codec: Codec = Codec.DENSE,
    device: str = "pi-4",
) -> ClientUpdate:
    """What a device sends whose part has these new values; `new` is at the size of the whole model."""
    tensors: dict[str, Payload] = {}
    for name, part in gather(mask, new, mask.trained_tensors).items():
        sparse = codec is Codec.SPARSE and name in mask.held
        tensors[name] = Sparse.where(part, mask.held[name]) if sparse else Dense(part)
    result = dataclasses.replace(RESULT, samples=samples)
    rule = RuleSettings(name="sgd", settings={"codec": codec.value})
    return ClientUpdate(device, mask, rule, 1, base, result, tensors, trust=trust)


@st.composite
def rounds(draw: st.DrawFn, *, stale: bool = True) -> tuple[Model, list[ClientUpdate]]:
    """A model, and updates of several masks: weights of any size, some of them from an older model."""
    graph = draw(model_graphs())
    model = Model(graph, random_weights(graph, draw(st.integers(0, 99))))
    older = random_weights(graph, 1234)
    found = []
    for number in range(draw(st.integers(1, 4))):
        base = older if stale and draw(st.booleans()) else model.weights
        scale = draw(st.sampled_from([1e-3, 1.0, 30.0]))
        change = random_weights(graph, 1000 + number, scale)
        new = {name: base[name] + change[name] for name in base}
        mask = draw(masks(graph))
        codec = draw(st.sampled_from(Codec))
        samples, trust = draw(st.integers(0, 700)), draw(st.sampled_from([1.0, 1.0, 0.5, 0.3]))
        found.append(client_update(mask, base, new, samples=samples, trust=trust, codec=codec, device=f"d{number}"))
    return model, found


def changes_of(model: Model, made: ClientUpdate, name: str) -> dict[tuple[int, ...], float]:
    """What an update changes of each coordinate that it holds, in double precision."""
    if name not in made.tensors:
        return {}
    payload: Any = made.tensors[name]
    part = (payload.array if isinstance(payload, Dense) else payload.to_dense()).ravel()
    statistic = model.graph.tensor[name].role is TensorRole.STATISTIC
    base = (model.weights if statistic else made.base)[name]
    held = set(held_coordinates(made.mask, name))
    kept = kept_coordinates(made.mask, name)
    return {c: float(value) - float(base[c]) for c, value in zip(kept, part, strict=True) if c in held}


def counted(made: Sequence[ClientUpdate]) -> list[ClientUpdate]:
    """The updates with the samples that they count for: at most ten times the middle claim, of two the lower."""
    claims = sorted(c.result.samples for c in made if c.result.samples)
    most = 10 * claims[(len(claims) - 1) // 2] if claims else 0
    results = [dataclasses.replace(c.result, samples=min(c.result.samples, most)) for c in made]
    return [dataclasses.replace(c, result=result) for c, result in zip(made, results, strict=True)]


def slow_mean(
    model: Model, made: Sequence[ClientUpdate], overlap: Overlap = Overlap.HOLDERS
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The average coordinate by coordinate in double precision, and the mean of the changes without their signs."""
    exact, size = {}, {}
    everybody = sum(c.result.samples * c.trust for c in made)
    for name, now in model.weights.items():
        exact[name], size[name] = now.astype(np.float64), np.zeros(now.shape)
        found = [(c.result.samples * c.trust, changes_of(model, c, name)) for c in made]
        for coordinate in np.ndindex(now.shape):
            holders = [(w, change[coordinate]) for w, change in found if coordinate in change]
            total = sum(w for w, _ in holders) if overlap is Overlap.HOLDERS else everybody
            if total:
                exact[name][coordinate] += sum(w * change for w, change in holders) / total
                size[name][coordinate] = sum(w * abs(change) for w, change in holders) / total
    return exact, size
