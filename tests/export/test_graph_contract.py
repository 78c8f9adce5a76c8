"""Every graph is what docs/graphs.md says: its tables beside the inputs and outputs of real graphs, whole and cut."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.graph_check import check_graph
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import ModelGraph, TensorRole
from export.describe_graph import describe
from export.inference_graph import inference_graph
from export.losses import Loss
from export.training_graph import training_graph
from export.zoo import ZOO, build

PAGE = Path(__file__).parents[2] / "docs" / "graphs.md"
TYPES = {"float32", "int64", "int32", "uint8", "bool"}
BATCH = 3


class Dropping(nn.Module):
    """Everything optional at once: dropout, running statistics, and a norm without parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.BatchNorm1d(8, affine=False))
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.body(x))
        return result


SMALL: Mapping[str, tuple[Callable[[], nn.Module], Loss]] = {
    "dropout": (Dropping, Loss.CROSS_ENTROPY),
    "masked": (Dropping, Loss.MASKED_CROSS_ENTROPY),
    "regression": (Dropping, Loss.MEAN_SQUARED_ERROR),
}


@dataclass(frozen=True)
class Row:
    """A row of a table: what is put in or comes out."""

    types: frozenset[str]
    shape: str
    when: str


def tables() -> dict[str, dict[str, Row]]:
    """The tables of the page that describe inputs and outputs, by the heading of their first column."""
    found: dict[str, dict[str, Row]] = {}
    rows: dict[str, Row] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[1:] == ["type", "shape", "when", "meaning"]:
            rows = found[cells[0]] = {}
        elif line.startswith("| `") and len(cells) == 5:
            rows[cells[0].strip("`")] = Row(frozenset(cells[1].split(", ")), cells[2], cells[3])
        elif not line.startswith("|"):
            rows = {}
    return found


TABLES = tables()


@dataclass(frozen=True, eq=False)
class Exported:
    """The graphs of a model."""

    train: bytes
    infer: bytes
    graph: ModelGraph
    loss: Loss


@cache
def exported(name: str) -> Exported:
    loss = SMALL[name][1] if name in SMALL else Loss.CROSS_ENTROPY
    if name in SMALL:
        model, example = SMALL[name][0](), torch.zeros(2, 5)
    else:
        # Shapes are enough, and VGG16 has half a gigabyte of weights; an LSTM's first state needs numbers.
        with torch.device("cpu" if name == "char_lstm" else "meta"):
            model = build(name)
            example = torch.zeros((2, *ZOO[name].input_shape), dtype=getattr(torch, ZOO[name].input_dtype))
    trained, traced = training_graph(model, example, loss)
    inferring = inference_graph(model, example)
    return Exported(trained.SerializeToString(), inferring.SerializeToString(), describe(traced, name), loss)


def masks(graph: ModelGraph) -> list[Mask]:
    """Everything trained, the first layer alone, every second layer, the last alone."""
    layers = graph.trainable_layers
    return [full_mask(graph), *(Mask.of(graph, trained=some) for some in (layers[:1], layers[::2], layers[-1:]))]


every_model = pytest.mark.parametrize("name", [*ZOO, *SMALL])


def test_the_page_has_a_table_of_every_graph() -> None:
    assert {heading: set(rows) for heading, rows in TABLES.items()} == {
        "input": {"x", "y", "label_mask", "seed", "<tensor>"},
        "output": {"loss", "correct", "grad:<tensor>", "new:<tensor>"},
        "inference input": {"x", "<tensor>"},
        "inference output": {"logits"},
        "feature output": {"features"},
    }
    assert all(row.types <= TYPES for rows in TABLES.values() for row in rows.values())


@every_model
def test_inputs_and_outputs_are_those_of_the_page(name: str) -> None:
    found = exported(name)
    for mask in masks(found.graph):
        model = onnx.load_from_string(cut_training_graph(found.train, mask))
        assert_described(model.graph.input, TABLES["input"], found.graph)
        assert_described(model.graph.output, TABLES["output"], found.graph)
    model = onnx.load_from_string(found.infer)
    assert_described(model.graph.input, TABLES["inference input"], found.graph)
    assert_described(model.graph.output, TABLES["inference output"], found.graph)


@every_model
def test_what_is_always_there_is_and_what_is_optional_is_there_when_the_page_says(name: str) -> None:
    found = exported(name)
    conditions = {
        "always": True,
        "the loss is `masked_cross_entropy`": found.loss is Loss.MASKED_CROSS_ENTROPY,
        "the model has dropout": name in SMALL,
        "the model classifies": found.loss is not Loss.MEAN_SQUARED_ERROR,
    }
    for mask in masks(found.graph):
        model = onnx.load_from_string(cut_training_graph(found.train, mask))
        for heading, nodes in (("input", model.graph.input), ("output", model.graph.output)):
            names = {node.name for node in nodes}
            for row_name, row in TABLES[heading].items():
                if row.when in conditions:
                    assert (row_name in names) == conditions[row.when], row_name


@every_model
def test_gradients_and_new_statistics_are_those_of_trained_tensors(name: str) -> None:
    found = exported(name)
    for mask in masks(found.graph):
        outputs = {o.name for o in onnx.load_from_string(cut_training_graph(found.train, mask)).graph.output}
        roles = {tensor: found.graph.tensor[tensor].role for tensor in mask.trained_tensors}
        expected = {f"{'new' if role is TensorRole.STATISTIC else 'grad'}:{tensor}" for tensor, role in roles.items()}
        assert outputs - {"loss", "correct"} == expected


@every_model
def test_graphs_have_the_format_of_the_page(name: str) -> None:
    found = exported(name)
    page = PAGE.read_text(encoding="utf-8")
    for data in (found.train, found.infer):
        check_graph(data)
        model = onnx.load_from_string(data)
        assert f"IR version {model.ir_version}, opset {model.opset_import[0].version} of" in page
        assert [entry.domain for entry in model.opset_import] == [""]
        nodes = [*model.graph.node, *(n for m in model.graph.node for a in m.attribute for n in a.g.node)]
        assert all(node.domain == "" and node.op_type not in ("Loop", "If") for node in nodes)


def assert_described(nodes: object, rows: Mapping[str, Row], graph: ModelGraph) -> None:
    for node in nodes:  # type: ignore[attr-defined]
        prefix, _, tensor = node.name.rpartition(":")
        pattern = f"{prefix}:<tensor>" if prefix else "<tensor>"
        row = rows.get(node.name) if node.name in rows else rows[pattern]
        assert row is not None
        kind = node.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name
        assert dtype in row.types, node.name
        dims = [dim.dim_param or dim.dim_value for dim in kind.shape.dim]
        match row.shape:
            case "[]":
                assert dims == []
            case "[batch]":
                assert dims == ["batch"]
            case "[batch, ...]":
                assert dims[0] == "batch"
            case "[classes]":
                assert dims == [graph.classes]
            case "as `tensors` says":
                spec = graph.tensor[tensor]
                assert dtype == spec.dtype
                assert len(dims) == len(spec.shape)
                assert all(isinstance(dim, str) or dim == size for dim, size in zip(dims, spec.shape, strict=True))
            case other:
                pytest.fail(f"the page has the shape {other}")
