import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from edgefl.artifacts.bundle import (
    GRAPH,
    MANIFEST,
    TRAIN,
    Bundle,
    Manifest,
    read_bundle,
    unpack_bundle,
    write_bundle,
)
from edgefl.errors import SchemaError
from edgefl.model_graph import Dtype
from edgefl.values import digest_of, dumps
from examples.networks import cnn4
from tests.artifacts.hostile_bundles import HOSTILE
from tests.artifacts.hostile_graphs import plain_model


def bundle() -> Bundle:
    graph = cnn4()
    files = {GRAPH: dumps(graph).encode(), TRAIN: plain_model().SerializeToString()}
    manifest = Manifest(
        model="cnn4",
        graph=graph.digest,
        input_shape=(1, 28, 28),
        input_dtype=Dtype.FLOAT32,
        outputs=10,
        loss="cross_entropy",
        files={name: digest_of(data) for name, data in files.items()},
        made_with={"edgefl": "0.1.0"},
    )
    return Bundle(manifest, graph, files)


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_a_bundle_comes_back(name: str, tmp_path: Path) -> None:
    write_bundle(bundle(), tmp_path / name)
    again = read_bundle(tmp_path / name)
    assert again.manifest == bundle().manifest
    assert again.graph == bundle().graph
    assert again.files == bundle().files


def test_equal_bundles_are_equal_zip_files(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        write_bundle(bundle(), tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_damaged_or_incomplete_bundle_is_refused(tmp_path: Path) -> None:
    write_bundle(bundle(), tmp_path / "b")
    (tmp_path / "b" / TRAIN).write_bytes(b"another graph")
    with pytest.raises(SchemaError, match=r"train.onnx of .* does not match its digest"):
        read_bundle(tmp_path / "b")
    (tmp_path / "b" / TRAIN).unlink()
    with pytest.raises(SchemaError, match=r"has no train.onnx"):
        read_bundle(tmp_path / "b")
    (tmp_path / "b" / MANIFEST).unlink()
    with pytest.raises(SchemaError, match=r"has no manifest.json"):
        read_bundle(tmp_path / "b")
    (tmp_path / "not.zip").write_bytes(b"PK not really")
    with pytest.raises(SchemaError, match="not a readable zip file"):
        read_bundle(tmp_path / "not.zip")


def test_a_manifest_cannot_reach_outside(tmp_path: Path) -> None:
    good = bundle()
    bad = replace(good, manifest=replace(good.manifest, files={"../secret": digest_of(b"")}))
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr(MANIFEST, dumps(bad.manifest))
    with pytest.raises(SchemaError, match=r"\.\./secret"):
        read_bundle(tmp_path / "bad.zip")


def test_a_manifest_of_another_graph_is_refused(tmp_path: Path) -> None:
    good = bundle()
    write_bundle(replace(good, manifest=replace(good.manifest, graph=cnn4(classes=11).digest)), tmp_path / "b")
    with pytest.raises(SchemaError, match="another model graph"):
        read_bundle(tmp_path / "b")


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_bundle_is_refused_in_little_memory(how: str) -> None:
    data = HOSTILE[how]()
    tracemalloc.start()
    try:
        with pytest.raises(SchemaError):
            unpack_bundle(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20 + 2 * len(data)
