"""A device's result as one body."""

import numpy as np
import pytest

from edgefl.errors import WireFormatError
from edgefl.masks import Mask, full_mask, leading_channels
from edgefl.values import dumps
from edgefl.wire import Body, BodyKind, Dense, Payload, ResultBody, Sparse, decode_result, encode, encode_result
from examples.networks import character_lstm, cnn4
from tests.values.samples import RESULT

GRAPH = cnn4()


def report(next_mask: Mask | None = None) -> ResultBody:
    tensors: dict[str, Payload] = {
        "head.weight": Dense(np.ones((10, 256), np.float32)),
        "x": Sparse.where(np.eye(3, dtype=np.float32)),
    }
    return ResultBody(RESULT, full_mask(GRAPH).digest, tensors, next_mask, seed=7)


@pytest.mark.parametrize("changed", [False, True])
def test_a_report_comes_back(changed: bool) -> None:
    held = np.arange(32 * 9).reshape(32, 1, 3, 3) % 2 == 0
    tensor = next(t.name for t in GRAPH.tensors if t.shape == (32, 1, 3, 3))
    mask = Mask.of(GRAPH, trained=["head"], held={tensor: held}) if changed else None
    sent = report(mask)
    found = decode_result(encode_result(sent, GRAPH), GRAPH)
    assert found.result == RESULT
    assert found.mask == sent.mask
    assert found.seed == 7
    assert set(found.tensors) == set(sent.tensors)
    assert (found.next_mask is None) is not changed
    if mask is not None and found.next_mask is not None:
        assert found.next_mask.digest == mask.digest


def test_a_report_whose_result_is_known_is_read_without_looking_at_it_again() -> None:
    data = encode_result(report(leading_channels(GRAPH, 0.5)), GRAPH)
    first, again = decode_result(data, GRAPH), decode_result(memoryview(data), GRAPH, known=RESULT)
    assert again.result is RESULT
    assert (again.mask, again.seed, set(again.tensors)) == (first.mask, first.seed, set(first.tensors))
    assert again.next_mask is not None
    assert first.next_mask is not None
    assert again.next_mask.digest == first.next_mask.digest


def test_equal_reports_have_equal_bytes() -> None:
    assert encode_result(report(), GRAPH) == encode_result(report(), GRAPH)


def test_a_result_of_another_model_is_refused() -> None:
    with pytest.raises(WireFormatError, match="the result is for the model"):
        decode_result(encode_result(report(), GRAPH), character_lstm())


def test_a_report_that_is_no_result_is_refused() -> None:
    about = {"result": "{}", "model": GRAPH.digest, "mask": ""}
    with pytest.raises(WireFormatError, match="the report in the result is not valid"):
        decode_result(encode(Body(BodyKind.UPDATE, {}, about=about)), GRAPH)


def test_bits_of_a_mask_without_its_name_are_refused() -> None:
    with_mask = encode_result(report(leading_channels(GRAPH, 0.5)), GRAPH)
    assert decode_result(with_mask, GRAPH).next_mask is not None
    about = {"result": dumps(RESULT), "model": GRAPH.digest, "mask": ""}
    tensors = {"kept/block1.conv": Dense(np.ones(3, np.uint8))}
    with pytest.raises(WireFormatError, match="without its digest"):
        decode_result(encode(Body(BodyKind.UPDATE, tensors, about=about)), GRAPH)
