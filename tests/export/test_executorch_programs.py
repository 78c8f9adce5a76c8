"""Programs by their specification: cuts share a lowered step, predictions take weights as inputs."""

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.artifacts.bundle import INFER, TRAIN, Bundle, pack_bundle, unpack_bundle, with_programs
from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.artifacts.onnx_session import open_onnx_session
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import ExportError
from edgefl.masks import Mask, gather
from edgefl.planning.rungs import Ladder
from edgefl.values import SAMPLE_WEIGHTS, Program, ProgramSpec, digest_of
from export.bundle import make_bundle
from export.executorch import Runner
from export.executorch.program import ProgramCompiler, compile_program
from export.zoo.seeding import seeded
from tests.export.parity import assert_close

BATCH = 4

pytestmark = pytest.mark.usefixtures("one_thread")


def network() -> nn.Module:
    """A small network with batch norm."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 24, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24 * 4, 5)),
    )


@cache
def model() -> nn.Module:
    with seeded(1):
        made = network()
        made(torch.randn(8, 1, 8, 8))  # running statistics that are not 0 and 1
    return made


EXAMPLE = torch.zeros(2, 1, 8, 8)


@cache
def bundle() -> Bundle:
    return make_bundle(model(), "small", EXAMPLE)


@cache
def ladder() -> Ladder:
    files = bundle().manifest.files
    return Ladder(bundle().graph, files[TRAIN], files[INFER], fractions=(1.0, 0.5))


def mask_of(spec: ProgramSpec) -> Mask:
    """Other channels than the first ones: a program serves any of these widths."""
    graph = bundle().graph
    kept = {name: range(graph.group[name].width)[-width:] for name, width in spec.widths.items()}
    return Mask.of(graph, kept=kept, trained=spec.trained)


def run(program: Program, pte: bytes, **given: Any) -> dict[str, Any]:
    found = Runner(pte)(*(given[name] for name in program.inputs))
    return dict(zip(program.outputs, found, strict=True))


def onnx_run(file: str, given: dict[str, Any]) -> dict[str, Any]:
    session = open_onnx_session(bundle().files[file], threads=1)
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {node.name: given[node.name] for node in session.get_inputs()})
    return dict(zip(names, found, strict=True))


@cache
def training() -> dict[tuple[str, ...], tuple[Program, bytes]]:
    """The programs of all cuts at half of the width, compiled together."""
    compiler = ProgramCompiler(model(), EXAMPLE, bundle().graph)
    widths = ladder().widths[0.5]
    specs = [ladder().training_spec(widths, trained, BATCH) for trained in ladder().cuts.values()]
    return {spec.trained: compiler.compile(spec) for spec in specs}


def inputs(spec: ProgramSpec) -> dict[str, Any]:
    generator = np.random.default_rng(4)
    x = generator.standard_normal((BATCH, 1, 8, 8), dtype=np.float32)
    given = {"x": x, "y": generator.integers(0, 5, BATCH), SAMPLE_WEIGHTS: np.full(BATCH, 1 / BATCH, np.float32)}
    return {**given, **gather(mask_of(spec), bundle_weights(bundle()))}


def test_every_cut_returns_what_the_onnx_graph_returns_of_its_layers() -> None:
    assert len(training()) == 4
    for program, pte in training().values():
        given = inputs(program.spec)
        theirs = onnx_run(TRAIN, given)
        kept = mask_of(program.spec).trained_tensors
        expected = [
            n for n in theirs if n.removeprefix(GRADIENT).removeprefix(NEW_STATISTIC) in {"loss", "correct", *kept}
        ]
        ours = run(program, pte, **given)
        assert set(ours) == set(expected)
        assert_close(ours, {name: theirs[name] for name in expected})


def test_a_smaller_cut_needs_less_memory_and_a_smaller_file() -> None:
    programs = [program for program, _ in training().values()]
    for larger, smaller in itertools.pairwise(programs):
        assert smaller.size < larger.size
        assert 0 < smaller.peak_bytes <= larger.peak_bytes
    assert programs[-1].peak_bytes < programs[0].peak_bytes


def test_a_cut_of_a_larger_step_is_the_program_that_is_compiled_alone() -> None:
    spec = list(training().values())[-1][0].spec
    alone, pte = compile_program(model(), EXAMPLE, bundle().graph, spec)
    together = training()[spec.trained][0]
    assert (alone.inputs, alone.outputs) == (together.inputs, together.outputs)
    assert_close(run(alone, pte, **inputs(spec)), run(together, training()[spec.trained][1], **inputs(spec)))


def test_a_prediction_takes_weights_as_inputs_and_uses_running_statistics() -> None:
    spec = ladder().inference_spec(ladder().widths[0.5], BATCH)
    program, pte = compile_program(model(), EXAMPLE, bundle().graph, spec)
    assert program.inputs == ("x", *bundle().graph.tensor)
    given = inputs(spec)
    assert_close(run(program, pte, **given), onnx_run(INFER, given))


def test_a_bundle_carries_programs() -> None:
    program, pte = next(iter(training().values()))
    assert (program.pte, program.size) == (digest_of(pte), len(pte))
    assert program.made_with.startswith("executorch 1.")
    again = unpack_bundle(pack_bundle(with_programs(bundle(), {program: pte})))
    assert again.manifest.programs == (program,)


def test_a_program_of_another_model_is_refused() -> None:
    spec = ladder().inference_spec(ladder().widths[0.5], BATCH)
    other = make_bundle(nn.Sequential(nn.Flatten(), nn.Linear(64, 5)), "other", EXAMPLE)
    with pytest.raises(ExportError, match="but this is"):
        compile_program(model(), EXAMPLE, other.graph, spec)
