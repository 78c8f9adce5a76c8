"""A training step that needs no engine: a loss whose gradient is plain, and parts of random models to train with it."""

import tracemalloc
from typing import Any

import numpy as np

from edgefl.local_rules import Batch, LocalRule, State, StepResult, TrainingInput, Update, trained_parameters
from edgefl.masks import Mask, Weights, gather
from edgefl.model_graph import GraphBuilder, ModelGraph, TensorRole


class Quadratic:
    """Half the squared distance of all trained weights from a wave that the batch moves; the exact gradient."""

    def __init__(self, graph: ModelGraph, trained: tuple[str, ...] | None = None) -> None:
        parameters = tuple(t.name for t in graph.tensors if t.role is not TensorRole.STATISTIC)
        self.graph, self.trained = graph, parameters if trained is None else trained
        self.shapes_seen: list[dict[str, tuple[int, ...]]] = []

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        self.shapes_seen.append({name: array.shape for name, array in weights.items()})
        gradients = {name: weights[name] - self._wave(weights[name].shape, batch) for name in self.trained}
        loss = sum(0.5 * float(np.square(gradient).sum(dtype=np.float64)) for gradient in gradients.values())
        statistics = {
            t.name: weights[t.name] + np.float32(batch.x[0])
            for t in self.graph.tensors
            if t.role is TensorRole.STATISTIC
        }
        return StepResult(loss, np.ones(batch.x.size, np.bool_), gradients, statistics)

    def _wave(self, shape: tuple[int, ...], batch: Batch) -> Any:
        places = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
        return np.sin(places + np.float32(batch.x[0]))


def memory_of_a_round(rule: LocalRule, part: TrainingInput) -> int:
    """The most bytes that a round takes with an engine that needs nothing but the gradients it returns."""

    def run(weights: Weights, batch: Batch) -> StepResult:
        gradients = {name: weights[name] * np.float32(0.5) for name in trained_parameters(part.mask)}
        return StepResult(0.0, np.ones(1, np.bool_), gradients)

    def whole_round() -> None:
        state = rule.begin(part)
        for number in range(2):
            rule.step(part, state, nth_batch(number), run)
        rule.finish(part, state, nth_batch(2), run)

    whole_round()  # what is cached for good is not the round's
    tracemalloc.start()
    try:
        whole_round()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def wide_model() -> ModelGraph:
    """A perceptron whose arrays outweigh everything else in memory."""
    build = GraphBuilder("wide", channels=400)
    build.linear("head", build.linear("b", build.linear("a", build.input, 500), 600), 10, head=True)
    return build.finish()


def nth_batch(number: int) -> Batch:
    return Batch(np.array([number + 1], np.float32), np.array([0]))


def random_weights(graph: ModelGraph, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {tensor.name: generator.normal(size=tensor.shape).astype(np.float32) for tensor in graph.tensors}


def part_of(mask: Mask, seed: int, **others: Any) -> TrainingInput:
    """The submodel of a mask with random weights."""
    return TrainingInput(mask, gather(mask, random_weights(mask.graph, seed)), seed, **others)


def train(rule: LocalRule, part: TrainingInput, run: Quadratic, steps: int) -> tuple[State, Update]:
    """A whole round."""
    state = rule.begin(part)
    for number in range(steps):
        rule.step(part, state, nth_batch(number), run)
    return state, rule.finish(part, state, nth_batch(steps), run)


def saved(state: State) -> State:
    """What comes back from a checkpoint: equal arrays, none of them shared."""
    return State(
        state.mask,
        {name: array.copy() for name, array in state.weights.items()},
        {name: array.copy() for name, array in state.memory.items()},
        state.steps,
    )


def assert_resumes(rule: LocalRule, part: TrainingInput, run: Quadratic, *, steps: int, stop: int) -> None:
    """A round that is stopped after some steps and resumed ends like one that is not stopped."""
    _, whole = train(rule, part, run, steps)
    state = rule.begin(part)
    for number in range(steps):
        if number == stop:
            state = saved(state)
        rule.step(part, state, nth_batch(number), run)
    assert_same(rule.finish(part, saved(state), nth_batch(steps), run), whole)


def assert_same(one: Update, other: Update) -> None:
    assert one.mask.digest == other.mask.digest
    assert one.metrics == other.metrics
    assert one.weights.keys() == other.weights.keys()
    assert all(np.array_equal(array, other.weights[name]) for name, array in one.weights.items())
    assert one.tensors.keys() == other.tensors.keys()
    for name, payload in one.tensors.items():
        twin = other.tensors[name]
        assert type(payload) is type(twin)
        for field in ("array", "values", "packed"):
            assert np.array_equal(getattr(payload, field, 0), getattr(twin, field, 0))


def assert_frozen_stay(part: TrainingInput, update: Update) -> None:
    """Frozen tensors are those of the part, cut to the new widths where channels went."""
    frozen = set(part.mask.graph.tensor) - set(part.mask.trained_tensors)
    assert not frozen & set(update.tensors)
    whole = {t.name: np.zeros(t.shape, np.float32) for t in part.mask.graph.tensors}
    for name in frozen:
        whole[name][part.mask.index(name)] = part.weights[name]
        assert np.array_equal(update.weights[name], whole[name][update.mask.index(name)]), name
