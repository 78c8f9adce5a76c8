"""Embeddings and recurrent layers against PyTorch, whole, narrow, and at any batch size."""

from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn

from edgefl.errors import ExportError
from export.training_graph import training_graph
from tests.export.parity import Exported, assert_close, check

STEPS, FEATURES, WIDTH, CLASSES = 5, 6, 8, 4
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes .*_flat_weights:UserWarning")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


class Reader(nn.Module):
    """A recurrent layer between two linear ones, so that its input's gradient is seen and its channels can be cut."""

    def __init__(self, layer: nn.RNNBase, read: str = "last") -> None:
        super().__init__()
        self.before = nn.Linear(3, FEATURES)
        self.layer = layer
        self.head = nn.Linear(WIDTH * (1 + layer.bidirectional), CLASSES)
        self.read = read

    def forward(self, x: Tensor) -> Any:
        x = self.before(x)
        if not self.layer.batch_first:
            x = x.transpose(0, 1)
        steps, states = self.layer(x)
        if self.read == "states":
            hidden = states[0] * states[1].tanh() if isinstance(states, tuple) else states
            return self.head(hidden.transpose(0, 1).flatten(1)[:, : self.head.in_features])
        if self.read == "mean":
            return self.head(steps.mean(1 if self.layer.batch_first else 0))
        return self.head(steps[:, -1] if self.layer.batch_first else steps[-1])


def example() -> Tensor:
    return torch.randn(3, STEPS, 3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_first": True},
        {"batch_first": False, "bias": False},
        {"batch_first": True, "num_layers": 2},
        {"batch_first": True, "bidirectional": True},
        {"batch_first": False, "bidirectional": True, "num_layers": 2, "bias": False},
    ],
    ids=str,
)
def test_recurrent_layers_match(kind: Any, options: dict[str, Any]) -> None:
    exported = check(Reader(kind(FEATURES, WIDTH, **options)), example(), classes=CLASSES)
    assert {group.name: group.width for group in exported.graph.groups} == {"before": FEATURES, "layer": WIDTH}


@pytest.mark.parametrize("read", ["states", "mean"])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_all_outputs_can_be_read(kind: Any, read: str) -> None:
    check(Reader(kind(FEATURES, WIDTH, batch_first=True), read), example(), classes=CLASSES)


def test_a_plain_recurrent_layer_with_relu_matches() -> None:
    check(Reader(nn.RNN(FEATURES, WIDTH, batch_first=True, nonlinearity="relu")), example(), classes=CLASSES)


def test_a_sequence_of_one_step_matches() -> None:
    check(Reader(nn.LSTM(FEATURES, WIDTH, batch_first=True)), torch.randn(3, 1, 3), classes=CLASSES)


class Started(nn.Module):
    """An LSTM whose first states are made from the input, or zeros that the model makes itself."""

    def __init__(self, learned: bool) -> None:
        super().__init__()
        self.start = nn.Linear(3, WIDTH) if learned else None
        self.lstm = nn.LSTM(3, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Any:
        if self.start is None:
            state = x.new_zeros(1, x.shape[0], self.lstm.hidden_size), torch.zeros(1, len(x), self.lstm.hidden_size)
        else:
            first = self.start(x[:, 0]).unsqueeze(0)
            state = first, first.tanh()
        steps, _ = self.lstm(x, state)
        return self.head(steps[:, -1])


@pytest.mark.parametrize("learned", [True, False])
def test_states_that_the_model_gives_match(learned: bool) -> None:
    check(Started(learned), example(), classes=CLASSES)


class ByHand(nn.Module):
    """A loop over a cell, written in Python."""

    def __init__(self, cell: nn.RNNCellBase) -> None:
        super().__init__()
        self.cell = cell
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Any:
        state = None
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return self.head(state[0] if isinstance(state, tuple) else state)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells_in_a_loop_of_the_user_match(kind: Any) -> None:
    exported = Exported(ByHand(kind(3, WIDTH)), example())
    x, y = torch.randn(7, STEPS, 3), torch.arange(7) % CLASSES
    assert_close(exported.run(exported.weights(), x, y), exported.torch_run(exported.weights(), x, y))


def test_the_graph_does_not_grow_with_the_sequence() -> None:
    sizes = []
    for steps in (4, 60):
        model = Reader(nn.LSTM(FEATURES, WIDTH, num_layers=2, batch_first=True))
        graph, _ = training_graph(model, torch.randn(3, steps, 3))
        sizes.append(len(graph.graph.node))
    assert sizes[0] == sizes[1]


def test_the_cost_of_a_step_is_counted_once_for_every_step() -> None:
    exported = Exported(Reader(nn.LSTM(FEATURES, WIDTH, batch_first=True)), example())
    assert exported.graph.tensor["layer.weight_hh_l0"].uses == STEPS
    assert exported.graph.tensor["layer.bias_hh_l0"].uses == 0
    assert exported.graph.layer["layer"].inputs == ("before",)


def test_what_a_recurrent_layer_cannot_do_is_said() -> None:
    with pytest.raises(ExportError, match=r"module 'layer' \(LSTM\): dropout of 0.5 between.*Use one module per layer"):
        Exported(Reader(nn.LSTM(FEATURES, WIDTH, num_layers=2, dropout=0.5)), example())
    with pytest.raises(ExportError, match=r"proj_size cannot be exported\. Use a linear layer"):
        Exported(Reader(nn.LSTM(FEATURES, 16, proj_size=WIDTH)), example())


class Words(nn.Module):
    """Embedding, positions, and a head that may be the embedding again."""

    def __init__(self, *, tied: bool, padding: int | None = None) -> None:
        super().__init__()
        self.words = nn.Embedding(11, WIDTH, padding_idx=padding)
        self.places = nn.Embedding(STEPS, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 11, bias=False)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, x: Tensor) -> Any:
        x = self.words(x) + self.places(torch.arange(x.shape[1]))
        return self.head(torch.tanh(self.mix(x)).mean(1))


def words() -> Tensor:
    return torch.arange(3 * STEPS).reshape(3, STEPS) % 11


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("tied", [True, False])
def test_embeddings_match_and_the_padding_learns_nothing(tied: bool, padding: int | None) -> None:
    exported = check(Words(tied=tied, padding=padding), words(), classes=11, batch=9)
    assert ("head.weight" in exported.graph.tensor) is not tied
    x = torch.full((4, STEPS), 2)
    grad = exported.run(exported.weights(), x, torch.arange(4))["grad:words.weight"]
    if not tied:
        assert (abs(grad).sum() == 0) == (padding == 2)


def test_the_vocabulary_is_never_cut() -> None:
    exported = Exported(Words(tied=False), words())
    cut = {(span.tensor, span.axis) for group in exported.graph.groups for span in group.spans}
    assert ("words.weight", 1) in cut
    assert not {("words.weight", 0), ("places.weight", 0), ("head.weight", 0)} & cut


def test_a_repeated_word_gets_the_gradients_of_all_its_places_with_many_threads() -> None:
    """onnxruntime's ScatterND loses some of them, now and then."""
    exported = Exported(Words(tied=False), words())
    kinds = {node.op_type for node in exported.onnx.graph.node}
    assert "ScatterElements" in kinds
    assert "ScatterND" not in kinds


def test_an_embedding_scaled_by_frequency_is_refused() -> None:
    model = nn.Sequential(nn.Embedding(5, 4, scale_grad_by_freq=True), nn.Flatten(), nn.Linear(4 * STEPS, 3))
    with pytest.raises(ExportError, match=r"module '0' \(Embedding\): .*scale_grad_by_freq=True"):
        Exported(model, words() % 5)


def test_two_exports_are_the_same_bytes() -> None:
    torch.manual_seed(0)
    model = Reader(nn.GRU(FEATURES, WIDTH, batch_first=True))
    first, second = (training_graph(model, example())[0] for _ in range(2))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)
    onnx.checker.check_model(first, full_check=True)
