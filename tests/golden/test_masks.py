"""This EdgeFL gives the masks of the golden file their digests, shapes and bodies."""

import hashlib
import json
from typing import Any

import pytest

from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import digest_of, loads
from edgefl.wire import decode_mask, encode_mask
from tests.golden.encoding import FOLDER, flags_of, from_base64

FILE = json.loads((FOLDER / "masks.json").read_text(encoding="utf-8"))
MODEL = loads(ModelGraph, FILE["model"])


@pytest.mark.parametrize("case", FILE["cases"], ids=lambda case: case["name"])
def test_masks_have_these_digests_shapes_and_bodies(case: dict[str, Any]) -> None:
    shapes = dict(case["shapes"])
    held = {name: flags_of(text, shapes[name]) for name, text in case["held"].items()}
    mask = Mask.of(MODEL, trained=case["trained"], kept=case["kept"], held=held)
    assert mask.digest == case["digest"]
    assert [[name, list(shape)] for name, shape in mask.shapes.items()] == case["shapes"]
    assert list(mask.trained_tensors) == case["trained_tensors"]
    assert encode_mask(mask) == from_base64(case["body"])
    assert decode_mask(from_base64(case["body"]), MODEL).digest == case["digest"]


def test_the_model_is_named_by_the_digest_of_its_text() -> None:
    assert digest_of(FILE["model"].encode()) == FILE["model_digest"] == MODEL.digest


def test_a_digest_computed_by_hand() -> None:
    (case,) = (case for case in FILE["cases"] if case["name"] == "narrow, frozen, held")
    bee, ligature = "\U0001f41d", "\ufb00"
    fields = [
        b"edgefl.mask/1",
        FILE["model_digest"].encode(),
        b"3",
        b"conv",
        b"head",
        bee.encode(),
        b"group conv",
        bytes([0b1101]),
        b"group hidden",
        bytes([0b00110]),
        b"tensor __proto__",
        bytes([0b101]),
        f"tensor {ligature}.weight".encode(),
        bytes([0b01101101, 0b11011011, 0b10]),  # 18 weights, of which 1, 4, 7, ... are not held
    ]
    hashed = hashlib.sha256(b"".join(len(field).to_bytes(8, "little") + field for field in fields)).hexdigest()
    assert case["digest"] == f"sha256:{hashed}"


def test_shapes_computed_by_hand() -> None:
    (case,) = (case for case in FILE["cases"] if case["name"] == "narrow")
    shapes = dict(case["shapes"])
    assert shapes["\ufb00.weight"] == [6, 3]  # two stacks of 3 of 4 channels
    assert shapes["\U0001f41d.weight"] == [2, 12]  # 3 channels of 4 inputs each
    assert shapes["conv.count"] == []
