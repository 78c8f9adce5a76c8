"""Chooses the most informative cases of a model: several widths, several cuts and two batch sizes.

Widths are uneven on purpose: planners choose odd ones, kernels are slower on them, and a fit to multiples of eight
alone would be too optimistic. Two batch sizes separate the fixed cost of a step from the cost per sample. Cuts separate
the forward from the backward pass, and gaps between trained layers separate the two halves of the latter.
"""

import importlib.util
from collections.abc import Iterator, Sequence

import numpy as np

from device_runtime.engines import Engine
from device_runtime.profiler.cases import Case, CaseProgram, Sample, Trial, load_step
from device_runtime.telemetry.clock import Clock, now
from edgefl.artifacts.bundle import TRAIN, Bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.masks import Mask, kept_width
from edgefl.model_graph import ModelGraph

__all__ = ["cases_of", "fitting_batch", "programs_of"]

FRACTIONS = (1.0, 0.7, 0.45, 0.25)
_UNEVEN = 0.3
LARGEST_BATCH, SMALLEST_BATCH = 32, 4
BATCH_RATIO = 4

Cut = tuple[str, ...]
"""The layers that a program trains."""


def programs_of(bundle: Bundle) -> dict[Cut, CaseProgram]:
    """Return the training graph of a bundle, and cuts of it: those that it holds, or new ones if onnx is installed."""
    manifest = bundle.manifest
    sample = Sample(manifest.input_shape, manifest.input_dtype.value, manifest.outputs, manifest.loss)

    def program(data: bytes) -> CaseProgram:
        return CaseProgram(manifest.model, data, sample)

    every = tuple(bundle.graph.trainable_layers)
    found = {every: program(bundle.files[TRAIN])}
    for layers, name in _held_cuts(bundle):
        found[layers] = program(bundle.files[name])
    if len(found) == 1 and importlib.util.find_spec("onnx") is not None:
        for layers in _cuts(bundle.graph):
            found[layers] = program(cut_training_graph(bundle.files[TRAIN], Mask.of(bundle.graph, trained=layers)))
    return found


def cases_of(bundle: Bundle, programs: dict[Cut, CaseProgram], batch: int) -> list[Case]:
    """Return the cases of a bundle, at a batch size and at a quarter of it."""
    generator = np.random.default_rng(0)
    masks = [
        (program, _uneven(bundle.graph, fraction, layers, generator))
        for layers, program in programs.items()
        for fraction in FRACTIONS
    ]
    return [Case(program, mask, size) for program, mask in masks for size in (batch, max(1, batch // BATCH_RATIO))]


def fitting_batch(engine: Engine, bundle: Bundle, programs: dict[Cut, CaseProgram], *, seconds: float) -> int:
    """Return the largest batch size for which a step of the whole model should take at most this long."""
    every = tuple(bundle.graph.trainable_layers)
    small = Case(programs[every], _uneven(bundle.graph, FRACTIONS[-1], every, np.random.default_rng(0)), SMALLEST_BATCH)
    whole = Case(programs[every], Mask.of(bundle.graph), 1)
    guess = _seconds(engine, small) * whole.multiply_adds / max(1, small.multiply_adds)
    batch = LARGEST_BATCH
    while batch > SMALLEST_BATCH and batch * guess > seconds:
        batch //= 2
    return batch


def _seconds(engine: Engine, case: Case, clock: Clock = now) -> float:
    trial = Trial(case, load_step(engine, case))
    trial.run(2)
    began = clock()
    trial.run()
    return clock() - began


def _uneven(graph: ModelGraph, fraction: float, layers: Sequence[str], generator: np.random.Generator) -> Mask:
    """Return a mask of about this width, with a little more of some groups and a little less of others."""
    kept = {}
    for group in graph.groups:
        share = fraction if fraction == 1 else fraction * generator.uniform(1 - _UNEVEN, 1 + _UNEVEN)
        kept[group.name] = range(kept_width(group, min(1.0, share)))
    return Mask.of(graph, trained=layers, kept=kept)


def _cuts(graph: ModelGraph) -> Iterator[Cut]:
    """Yield layers to train: every second layer, the later half of the blocks, the last block."""
    layers, blocks = graph.trainable_layers, list(graph.blocks)
    yield tuple(layers[1::2]) or tuple(layers)
    for first in (len(blocks) // 2, len(blocks) - 1):
        later = tuple(layer for layer in layers if graph.layer[layer].block in blocks[first:])
        if later:
            yield later


def _held_cuts(bundle: Bundle) -> Iterator[tuple[Cut, str]]:
    """Yield the cut graphs of a bundle: `train.NAME.onnx` trains the block NAME and all after it."""
    blocks = list(bundle.graph.blocks)
    stem, _, ending = TRAIN.rpartition(".")
    for name in bundle.files:
        block = name.removeprefix(f"{stem}.").removesuffix(f".{ending}")
        if name != TRAIN and name.startswith(stem) and block in blocks:
            later = blocks[blocks.index(block) :]
            yield (
                tuple(layer for layer in bundle.graph.trainable_layers if bundle.graph.layer[layer].block in later),
                name,
            )
