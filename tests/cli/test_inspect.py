import io
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from edgefl.cli.main import main
from edgefl.masks import leading_channels
from edgefl.values import Budget, dumps
from edgefl.wire import Body, Dense, Kind, encode, encode_mask
from examples.networks import cnn4

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


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data = encode(Body(Kind.WEIGHTS, {"w": Dense(np.zeros(2, np.float32))}))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert "standard input: weights body" in shown(capsys, "-")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "not valid JSON"),
        (b"\x00" * 30, "error"),
        (b"{}", "schema"),
        (b'{"schema": "edgefl.unicorn/1"}', "not a known kind"),
        (safetensors.numpy.save({"w": np.zeros(2, np.float32)}), "no EdgeFL metadata"),
        ((GOLDEN / "update_v1.safetensors").read_bytes()[:-1], "not a sound safetensors file"),
    ],
)
def test_a_file_that_is_not_ours_is_refused(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert main(["inspect", str(tmp_path / "file")]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
