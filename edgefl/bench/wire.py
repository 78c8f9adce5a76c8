"""`edgefl bench wire`: size of a model's update on the network, including headers, and its encode and decode times.

Codecs are measured on the plain tensors of a model. Uplinks are what strategies send: the bodies that a device would
send, with its report, after a step that changed nothing, which have the same size as any other. Times are those of the
body, without the compressor's work before it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from edgefl.bench.benchmark_model import BenchmarkModel
from edgefl.bench.report import BenchReport
from edgefl.bench.timing import timed
from edgefl.bench.unlimited_device import unlimited_device
from edgefl.errors import EdgeFLError
from edgefl.local_rules.descent import weight_tensors
from edgefl.masks import Weights, full_mask, gather, random_channels
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.strategies import Participant, RoundContext, strategy_of
from edgefl.strategies.transfer_sizes import upload_report
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.values import Budget, Setting
from edgefl.wire import (
    Bits,
    Body,
    BodyKind,
    Counts,
    Dense,
    Payload,
    Slice,
    Sparse,
    decode,
    decode_result,
    encode,
    encode_result,
    measure,
)

__all__ = ["codec_bodies", "uplinks", "wire_report"]

_OTHERS = ("hermes", "fedspa", "fedmap", "fedpm")
"""Strategies with their own uplink."""
_ROUNDS = 10


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One kind of body to measure."""

    name: str
    kind: str
    parameters: int
    """Number of parameters it represents."""
    write: Callable[[], bytes]
    read: Callable[[bytes], object]
    read_again: Callable[[bytes], object]
    """Reads a body that was checked before: its arrays are views."""


def wire_report(bench_model: BenchmarkModel, *, turns: int = 15) -> BenchReport:
    """Measure every codec and every uplink on a model."""
    if turns < 2:
        raise EdgeFLError(f"--turns is {turns}", fix="Give at least 2.")
    graph = bench_model.bundle.graph
    cases = [*_codecs(graph, bench_model.weights), *_uplinks(graph, bench_model.weights)]
    data = {case.name: case.write() for case in cases}
    tasks: dict[str, Callable[[], object]] = {}
    for case in cases:
        tasks[f"write {case.name}"] = case.write
        tasks[f"read {case.name}"] = partial(case.read, data[case.name])
        tasks[f"again {case.name}"] = partial(case.read_again, data[case.name])
    times = timed(tasks, turns=turns)
    rows = []
    for case in cases:
        size = measure(data[case.name])
        rows.append(
            {
                "name": case.name,
                "kind": case.kind,
                "parameters": case.parameters,
                "bytes": size.total_bytes,
                "header_bytes": size.header_bytes,
                "bits_per_parameter": size.bits_per_parameter(case.parameters),
                "encode_seconds": times[f"write {case.name}"].figures(),
                "decode_seconds": times[f"read {case.name}"].figures(),
                "decode_again_seconds": times[f"again {case.name}"].figures(),
            }
        )
    setting = {"model": graph.name, "parameters": graph.parameters, "turns": turns}
    notes = ["bits are per parameter that a body represents, including headers and the report of an uplink"]
    return BenchReport("wire", setting, rows, notes=notes)


def codec_bodies(graph: ModelGraph, weights: Weights, seed: int = 0) -> Iterator[tuple[str, Body, int]]:
    """Yield a body for every codec, with the number of parameters it represents."""
    generator = np.random.default_rng(seed)
    masked = list(weight_tensors(full_mask(graph)))
    sizes = {tensor.name: tensor.size for tensor in graph.tensors if tensor.role is not TensorRole.STATISTIC}
    mask = random_channels(graph, 0.5, generator)
    part = gather(mask, weights)

    def body(make: Callable[[str], Payload], names: list[str], seed: int | None = None) -> tuple[Body, int]:
        payloads = {name: make(name) for name in names}
        return Body(BodyKind.UPDATE, payloads, seed=seed), sum(sizes[name] for name in names)

    def sparse(density: float) -> Callable[[str], Payload]:
        return lambda name: Sparse.where(weights[name], generator.random(weights[name].shape) < density)

    def bit(name: str) -> Payload:
        return Bits.of(generator.random(weights[name].shape) < 0.5)

    def count(name: str) -> Payload:
        return Counts.of(generator.integers(0, 6, weights[name].shape), 5)

    every = list(sizes)
    yield "dense, float32", *body(lambda name: Dense(weights[name]), every)
    yield "slice, half of the channels", *body(lambda name: Slice.of(mask, name, part[name]), every)
    for density in (0.5, 0.1, 0.01):
        yield f"sparse, density {density:g}", *body(sparse(density), every)
    yield "counts from 0 to 5", *body(count, every)
    yield "bits of the masked weights", *body(bit, masked, seed=2**64 - 1)
    yield "the same, norms in float32", *body(lambda n: bit(n) if n in masked else Dense(weights[n]), every, seed=1)


def _codecs(graph: ModelGraph, weights: Weights) -> Iterator[_Case]:
    for name, body, parameters in codec_bodies(graph, weights):
        yield _Case(name, "codec", parameters, partial(encode, body), decode, partial(decode, known=True))


def uplinks() -> dict[str, tuple[str, Mapping[str, Setting]]]:
    """Return every uplink: a title, its strategy and settings."""
    found: dict[str, tuple[str, Mapping[str, Setting]]] = {
        f"fedavg, sends {sent.value}": ("fedavg", {"sent": sent.value}) for sent in UplinkKind
    }
    return found | {name: (name, {}) for name in _OTHERS}


def _uplinks(graph: ModelGraph, weights: Weights) -> Iterator[_Case]:
    """Yield what each uplink sends for a device that can train the whole model."""
    round_context = RoundContext(0, _ROUNDS, 0)
    fleet = [Participant("device", unlimited_device(), Budget(), samples=100)]
    for title, (name, settings) in uplinks().items():
        strategy = strategy_of(name, settings)
        model = strategy.begin(graph, weights)
        task = strategy.plan(model, fleet, round_context)["device"]
        report = upload_report(model, task, round_context)
        read: Callable[[bytes], Any] = partial(decode_result, graph=graph)
        again: Callable[[bytes], Any] = partial(decode_result, graph=graph, known=report.result)
        yield _Case(title, "uplink", task.mask.cost.parameters, partial(encode_result, report, graph), read, again)
