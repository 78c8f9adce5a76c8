import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from edgefl.artifacts.bundle import with_sample, write_bundle
from edgefl.cli.main import main
from edgefl.data import described_by, load
from edgefl.masks import leading_channels
from edgefl.values import Budget, dumps
from edgefl.wire import Body, BodyKind, Dense, encode, encode_mask
from examples.networks import cnn4
from tests.device_runtime.federation import BUNDLE, bundle
from tests.values.samples import PLAN

GOLDEN = Path(__file__).parents[1] / "golden"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["inspect", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_a_wire_body_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, str(GOLDEN / "update_v1.safetensors"))
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "update body, wire version 1" in text
    assert "18446744073709551615" in lines["seed"]
    rows = {name: " ".join(line.split()[1:]) for name, line in lines.items()}
    assert rows["sparse.deltas"] == "sparse 100 x 200 5 of 20,000, float32 28"
    assert rows["bits"] == "bits 3 x 20 20 of 60 set 8"
    assert rows["counts"] == "counts 3 x 7 21 from 0 to 5 9"
    assert rows["dense.steps"] == "dense scalar 1 of int64 8"


def test_a_wire_body_is_told_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(shown(capsys, "--json", str(GOLDEN / "update_v1.safetensors")))
    assert told["total_bytes"] == (GOLDEN / "update_v1.safetensors").stat().st_size
    assert told["seed"] == str(2**64 - 1)
    assert told["tensors"]["bits"] == {"codec": "bits", "shape": [3, 20], "bytes": 8}


def test_a_mask_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mask = leading_channels(cnn4(), 0.25)
    (tmp_path / "mask").write_bytes(encode_mask(mask))
    text = shown(capsys, str(tmp_path / "mask"))
    assert "mask body" in text
    assert mask.digest in text
    assert "64 of 256 set" in text
    assert "conv1, conv2, conv3" in text


def test_documents_are_told_in_words_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budget = Budget(peak_bytes=512 * 2**20, kept_fraction=0.25)
    (tmp_path / "budget.json").write_text(dumps(budget))
    text = shown(capsys, str(tmp_path / "budget.json"))
    assert "budget, version 1" in text
    assert "512 MiB" in text
    assert json.loads(shown(capsys, "--json", str(tmp_path / "budget.json")))["peak_bytes"] == 512 * 2**20


def test_a_model_graph_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "graph.json").write_text(dumps(cnn4(), indent=2))
    text = shown(capsys, str(tmp_path / "graph.json"))
    assert "390,880 in 13 tensors" in text
    assert "head 10 (classes)" in text


def test_a_bundle_is_told_with_what_a_sample_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    described = with_sample(bundle(), described_by(load("digits"), bundle().sample))
    write_bundle(described, tmp_path / "folder")
    write_bundle(described, tmp_path / "file.zip")
    for name in ("folder", "file.zip"):
        assert main(["inspect", str(tmp_path / name)]) == 0
        said = capsys.readouterr().out
        assert "bundle, version 1" in said
        assert re.search(r"sample shape +1, 8, 8\n", said)
        assert re.search(r"sample raw dtype +uint8\n", said)
        assert re.search(r"sample example +class \d: 64 bytes, 256 bytes before and after normalisation\n", said)
        assert main(["inspect", "--json", str(tmp_path / name)]) == 0
        assert json.loads(capsys.readouterr().out)["sample"]["classes"] == 10
    assert main(["inspect", str(tmp_path / "folder" / "sample.json")]) == 0
    assert re.search(r"normalisation scale +16\n", capsys.readouterr().out)


def test_a_bundle_of_before_says_what_its_manifest_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(BUNDLE)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"sample shape +1, 8, 8\n", said)
    assert re.search(r"sample raw dtype +not known\n", said)


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data = encode(Body(BodyKind.WEIGHTS, {"w": Dense(np.zeros(2, np.float32))}))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert "standard input: weights body" in shown(capsys, "-")


def test_what_a_file_says_cannot_clear_the_screen_or_forge_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"note": "\x1b[2J\x9b1A", "model\n  digest": "sha256:0\r"}
    body = Body(BodyKind.WEIGHTS, {"w": Dense(np.zeros(2, np.float32))}, about=about)
    (tmp_path / "a\x1b[2Jb").write_bytes(encode(body))
    text = shown(capsys, str(tmp_path / "a\x1b[2Jb"))
    assert r"\x1b[2J\x9b1A" in text
    assert r"model\n  digest  sha256:0\r" in text
    assert text.replace("\n", "").isprintable()

    plan = dumps(PLAN).replace('"mode":"a"', r'"mode":"a\u001b[2J\n\u202e"')
    (tmp_path / "plan.json").write_text(plan)
    assert r"a\x1b[2J\n\u202e" in shown(capsys, str(tmp_path / "plan.json"))


def test_an_error_says_what_a_file_says_without_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a\x1b[2Jb").write_text("hello")
    assert main(["inspect", str(tmp_path / "a\x1b[2Jb")]) == 1
    error = capsys.readouterr().err
    assert r"a\x1b[2Jb: this is not valid JSON" in error
    assert error.replace("\n", "").isprintable()


def test_a_file_without_an_end_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("edgefl.wire.MAX_BODY_BYTES", 10_000)
    assert main(["inspect", "/dev/zero"]) == 1
    assert "/dev/zero: it has more than 10,000 bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "not valid JSON"),
        (b"\xef\xbb\xbf[1]", "a JSON object with a schema tag"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (b"\x00" * 30, "not an EdgeFL file"),
        ('{"schema": "edgefl.budget/1"}'.encode("utf-16"), "save it as UTF-8"),
        ('{"schema": "edgefl.budget/1"}'.encode("utf-16-le"), "save it as UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00>\x00", "not an EdgeFL file"),
        (b"PK\x03\x04\x2d\x00\x00\x00\x00\x00x.npy", "not a readable zip file"),
        (b"\x89PNG\r\n\x1a\n", "not an EdgeFL file"),
        (b"{}", "schema"),
        (b'{"schema": "edgefl.unicorn/1"}', "not a known kind"),
        (safetensors.numpy.save({"w": np.zeros(2, np.float32)}), "no EdgeFL metadata"),
        ((GOLDEN / "update_v1.safetensors").read_bytes()[:-1], "not a valid safetensors file"),
    ],
)
def test_a_file_that_is_not_ours_is_refused(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert main(["inspect", str(tmp_path / "file")]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"edgefl: error: {tmp_path / 'file'}: ")
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
