"""The graphs and programs that the profiler brings along are what the exporter makes of the zoo's models.

`python -m tests.export.test_reference_graphs` writes them anew.
"""

from dataclasses import replace
from pathlib import Path

import pytest

import device_runtime.profiler
from device_runtime.profiler.case_selection import programs_of
from device_runtime.profiler.reference_models import MODELS, reference_bundles
from edgefl.artifacts.bundle import GRAPH, TRAIN, Bundle, program_file, read_bundle, with_programs, write_bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.masks import Mask
from edgefl.planning.rungs import cuts_of, rung_widths
from edgefl.values import ProgramRole, ProgramSpec, digest_of
from export.bundle import make_bundle
from export.executorch.program import ProgramCompiler
from export.model_source import open_source
from export.zoo import block_of

FOLDER = Path(device_runtime.profiler.__file__).parent / "graphs"
LARGEST_BYTES = 1_000_000
PROGRAMS = {"cnn4": (1.0, 0.5, 0.25), "preresnet18": (0.5, 0.25), "mlp": (1.0, 0.5, 0.25)}
"""Widths of the programs of each model: a program of all of PreResNet18 would take a small device seconds a step."""
BATCHES = (32, 8)
"""The second alone for cuts."""


def exported(model: str) -> Bundle:
    """The bundle of a zoo model without weights, with the later half of its blocks and its last block cut out."""
    source = open_source(model)
    whole = make_bundle(source.model, model, source.example, block_of=block_of)
    blocks = list(whole.graph.blocks)
    later = {blocks[len(blocks) // 2], blocks[-1]}
    files = {name: whole.files[name] for name in (GRAPH, TRAIN)}
    files |= {TRAIN.replace(".", f".{block}."): cut_from(whole, block) for block in sorted(later)}
    digests = {name: digest_of(data) for name, data in files.items()}
    return Bundle(replace(whole.manifest, files=digests, made_with={}), whole.graph, files)


def with_training_programs(bundle: Bundle) -> Bundle:
    """The bundle with ExecuTorch programs: all layers at two batch sizes, and the last block alone."""
    source = open_source(bundle.manifest.model)
    compiler = ProgramCompiler(source.model, source.example, bundle.graph)
    return with_programs(bundle, dict(compiler.compile(spec) for spec in specs(bundle)))


def specs(bundle: Bundle) -> list[ProgramSpec]:
    """What is compiled, larger cuts first."""
    graph = bundle.graph
    every, *_, head = cuts_of(graph).values()
    forms = [(every, BATCHES[0]), (every, BATCHES[1]), (head, BATCHES[1])]
    return [
        ProgramSpec(
            role=ProgramRole.TRAIN,
            model=graph.digest,
            graph=bundle.manifest.files[TRAIN],
            widths=rung_widths(graph, fraction),
            trained=layers,
            batch_size=batch,
        )
        for fraction in PROGRAMS[bundle.manifest.model]
        for layers, batch in forms
    ]


def cut_from(bundle: Bundle, block: str) -> bytes:
    """The training graph of a block and all after it."""
    blocks = list(bundle.graph.blocks)
    kept = blocks[blocks.index(block) :]
    layers = [layer for layer in bundle.graph.trainable_layers if bundle.graph.layer[layer].block in kept]
    return cut_training_graph(bundle.files[TRAIN], Mask.of(bundle.graph, trained=layers))


@pytest.mark.parametrize("model", MODELS)
def test_a_built_in_graph_is_what_the_exporter_makes(model: str) -> None:
    stored = read_bundle(FOLDER / f"{model}.zip")
    fresh = exported(model)
    assert {name: data for name, data in stored.files.items() if not name.endswith(".pte")} == fresh.files
    files = {name: digest for name, digest in stored.manifest.files.items() if not name.endswith(".pte")}
    assert replace(stored.manifest, programs=(), files=files) == fresh.manifest


@pytest.mark.parametrize("model", MODELS)
def test_built_in_programs_are_of_the_built_in_graphs(model: str) -> None:
    stored = read_bundle(FOLDER / f"{model}.zip")
    assert {program.spec for program in stored.manifest.programs} == set(specs(stored))


def test_a_built_in_program_is_what_the_compiler_makes() -> None:
    stored = read_bundle(FOLDER / "mlp.zip")
    source = open_source("mlp")
    compiler = ProgramCompiler(source.model, source.example, stored.graph)
    for spec in specs(stored)[-2:]:  # the second is cut out of the first
        program, pte = compiler.compile(spec)
        assert program in stored.manifest.programs
        assert stored.files[program_file(spec)] == pte


def test_built_in_graphs_stay_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < LARGEST_BYTES


def test_built_in_models_bring_their_cuts_along() -> None:
    for bundle in reference_bundles():
        programs = programs_of(bundle)
        assert {program.data for program in programs.values()} == {
            data for name, data in bundle.files.items() if name.endswith(".onnx")
        }
        every = set(bundle.graph.trainable_layers)
        assert sum(set(layers) == every for layers in programs) == 1
        assert all(layers and set(layers) <= every for layers in programs)


if __name__ == "__main__":
    for name in MODELS:
        write_bundle(with_training_programs(exported(name)), FOLDER / f"{name}.zip")
