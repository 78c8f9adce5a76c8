"""The graphs that the profiler brings along are what the exporter makes of the zoo's models.

`python -m tests.export.test_reference_graphs` writes them anew.
"""

from dataclasses import replace
from pathlib import Path

import pytest

import device_runtime.profiler
from device_runtime.profiler.case_selection import programs_of
from device_runtime.profiler.reference_models import MODELS, reference_bundles
from edgefl.artifacts.bundle import GRAPH, TRAIN, Bundle, read_bundle, write_bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.masks import Mask
from edgefl.values import digest_of
from export.bundle import make_bundle
from export.model_source import open_source
from export.zoo import block_of

FOLDER = Path(device_runtime.profiler.__file__).parent / "graphs"
LARGEST_BYTES = 200_000


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
    assert stored.files == fresh.files
    assert stored.manifest == fresh.manifest


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
        write_bundle(exported(name), FOLDER / f"{name}.zip")
