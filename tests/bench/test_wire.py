"""Bits on the wire, against sums made by hand."""

import numpy as np
import pytest

from edgefl.bench.benchmark_model import open_benchmark_model
from edgefl.bench.wire import codec_bodies, uplinks, wire_report
from edgefl.errors import EdgeFLError
from edgefl.model_graph import GraphBuilder
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.wire import encode, measure
from tests.device_runtime.federation import BUNDLE


def test_dense_and_bits_take_what_a_sum_by_hand_says() -> None:
    build = GraphBuilder("two layers", channels=5)
    build.linear("head", build.linear("first", build.input, 7), 3, head=True)
    graph = build.finish()
    weights = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in graph.tensors}
    sizes = {name: measure(encode(body)) for name, body, _ in codec_bodies(graph, weights)}
    parameters = {name: count for name, _, count in codec_bodies(graph, weights)}

    # 5 * 7 + 7 and 7 * 3 + 3 floats of four bytes.
    dense = sizes["dense, float32"]
    assert parameters["dense, float32"] == graph.parameters == 66
    assert dense.total_bytes - dense.header_bytes == 4 * 66
    assert dense.bits_per_parameter(66) == pytest.approx(32 + 8 * dense.header_bytes / 66)

    # Of the masked weights alone, a byte begun for each tensor: 35 bits and 21 bits.
    bits = sizes["bits of the masked weights"]
    assert parameters["bits of the masked weights"] == 35 + 21
    assert sum(bits.tensor_bytes.values()) == 5 + 3


def test_every_codec_and_every_uplink_has_a_row() -> None:
    report = wire_report(open_benchmark_model(None, str(BUNDLE)), turns=2)
    rows = {row["name"]: row for row in report.rows}
    assert {row["kind"] for row in report.rows} == {"codec", "uplink"}
    assert set(uplinks()) <= set(rows)
    assert all(f"fedavg, sends {sent.value}" in rows for sent in UplinkKind)
    for row in report.rows:
        assert row["bits_per_parameter"] == 8 * row["bytes"] / row["parameters"]
        assert 0 < row["header_bytes"] < row["bytes"]
        assert row["encode_seconds"]["turns"] == row["decode_seconds"]["turns"] == 2
    values, noise = rows["fedavg, sends values"], rows["fedavg, sends masked_noise"]
    assert noise["bytes"] < values["bytes"]


def test_too_few_turns_are_refused() -> None:
    with pytest.raises(EdgeFLError, match="--turns is 1"):
        wire_report(open_benchmark_model(None, str(BUNDLE)), turns=1)
