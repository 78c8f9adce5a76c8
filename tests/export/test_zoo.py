"""The zoo: published sizes, shapes, tracing, blocks, seeds, and the user's own models."""

import dataclasses
import itertools
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from edgefl.errors import ExportError
from export.zoo import HEAD, ZOO, block_of, blocks_of, build, load_factory
from export.zoo.char_lstm import CharLSTM
from export.zoo.cnn import cnn4
from export.zoo.vgg import RepeatSpatially, vgg16

# torch warns that tracing touches the list in which an nn.LSTM repeats its own parameters; nothing is lost by it.
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes .*_flat_weights:UserWarning")

BATCH = 3
# Half a gigabyte of weights: its shapes are enough for everything but numbers.
SHAPES_ONLY = {"vgg16"}


def conv(inputs: int, outputs: int, kernel: int, *, bias: bool = False) -> int:
    return inputs * outputs * kernel**2 + bias * outputs


def chain(widths: list[int], kernel: int = 3, *, bias: bool = False) -> int:
    return sum(conv(a, b, kernel, bias=bias) for a, b in itertools.pairwise(widths))


def linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def lstm(inputs: int, hidden: int) -> int:
    return 4 * hidden * (inputs + hidden) + 2 * 4 * hidden


# Published where the paper gives a number, else layer by layer from the description.
COUNTS = {
    "cnn4": 389_920 + 960,
    "cnn8": chain([3, 32, 32, 64, 64, 128, 128, 256, 256]) + 2 * 2 * (32 + 64 + 128 + 256) + 256 * 4 * 10,
    "lenet5": conv(1, 20, 5, bias=True) + conv(20, 50, 5, bias=True) + linear(50 * 4 * 4, 500) + linear(500, 26),
    "vgg11": chain([3, 64, 128, 256, 256, 512, 512, 512, 512], bias=True) + 2 * 2752 + linear(512, 10),
    "vgg16": 537_206_056 // 4,
    "resnet18": 11_220_132,
    "preresnet18": 11_172_170,
    "mobilenet": 3_309_476,
    "mlp": linear(561, 1024) + linear(1024, 512) + linear(512, 6),
    "digits_cnn": chain([1, 48, 96, 192]) + 2 * (48 + 96 + 192) + linear(192, 10),
    "digits_mlp": linear(64, 32) + linear(32, 10),
    "char_lstm": 80 * 8 + lstm(8, 256) + lstm(256, 256) + linear(256, 80),
}


def on_meta(name: str, **options: int) -> nn.Module:
    with torch.device("meta"):
        return build(name, **options)


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def build_and_sample(name: str, **options: int) -> tuple[nn.Module, Tensor]:
    """A model, and a batch of 3 that fits it."""
    spec = ZOO[name]
    with torch.device("meta") if name in SHAPES_ONLY else nullcontext():
        model = build(name, **options)
        if spec.input_dtype == "int64":
            return model, torch.randint(spec.in_channels, (BATCH, *spec.input_shape))
        shape = (BATCH, options.get("in_channels", spec.in_channels), *spec.input_shape[1:])
        return model, torch.randn(shape)


def test_the_zoo_is_keyed_by_name_and_cannot_be_changed() -> None:
    assert set(ZOO) == set(COUNTS)
    assert all(name == spec.name and spec.paper and spec.description for name, spec in ZOO.items())
    with pytest.raises(TypeError):
        ZOO["mine"] = ZOO["cnn4"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        ZOO["cnn4"].classes = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", COUNTS)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    assert count(on_meta(name)) == COUNTS[name]


def test_fedmrn_masks_389920_weights_of_cnn4_and_leaves_960_norm_parameters() -> None:
    model = on_meta("cnn4")
    norms = sum(count(module) for module in model.modules() if isinstance(module, nn.BatchNorm2d))
    assert (count(model) - norms, norms) == (389_920, 960)


def test_sizes_are_those_of_the_tables_of_hermes_and_fedspa() -> None:
    megabytes = {name: 4 * COUNTS[name] / 1e6 for name in ("vgg16", "mlp")}
    assert {name: round(size, 2) for name, size in megabytes.items()} == {"vgg16": 537.21, "mlp": 4.41}
    # FedSpa, table 1: gigabytes for 1,000 rounds of 10 clients, both ways.
    gigabytes = {name: 1_000 * 10 * 2 * 4 * COUNTS[name] / 1e9 for name in ("vgg11", "resnet18")}
    assert {name: round(size, 1) for name, size in gigabytes.items()} == {"vgg11": 738.5, "resnet18": 897.6}


def test_lenet_for_ten_classes_has_the_431080_parameters_of_caffe() -> None:
    assert count(on_meta("lenet5", classes=10)) == 431_080


@pytest.mark.parametrize(("name", "number", "size"), [("mobilenet", 14, 3_206_976), ("preresnet18", 10, 11_167_040)])
def test_perfedmask_blocks_have_the_published_number_and_size(name: str, number: int, size: int) -> None:
    blocks = blocks_of(name)
    body = [p.numel() for parameter, p in on_meta(name).named_parameters() if block_of(parameter) in blocks]
    assert (len(blocks), sum(body)) == (number, size)


@pytest.mark.parametrize("name", ZOO)
def test_blocks_and_head_cover_every_parameter_and_statistic_once(name: str) -> None:
    prefixes = [f"{block}." for block in (*blocks_of(name), HEAD)]
    assert len(set(prefixes)) == len(prefixes)
    names = list(on_meta(name).state_dict())
    assert all(sum(key.startswith(prefix) for prefix in prefixes) == 1 for key in names)
    assert all(any(key.startswith(prefix) for key in names) for prefix in prefixes)


def test_blocks_are_in_the_order_of_the_forward_pass() -> None:
    assert blocks_of("preresnet18") == ("stem", *(f"block{n}" for n in range(1, 9)), "norm")
    assert blocks_of("vgg16") == (*(f"block{n}" for n in range(1, 14)), "fc1", "fc2")
    assert blocks_of("char_lstm") == ("embedding", "lstm1", "lstm2")
    assert block_of("block3.shortcut.norm.weight") == "block3"


@pytest.mark.parametrize("name", ZOO)
def test_forward_gives_one_score_a_class(name: str) -> None:
    model, sample = build_and_sample(name)
    assert sample.dtype == getattr(torch, ZOO[name].input_dtype)
    scores = model(sample)
    assert scores.shape == (BATCH, ZOO[name].classes)
    assert name in SHAPES_ONLY or bool(torch.isfinite(scores).all())


@pytest.mark.parametrize("name", [name for name, spec in ZOO.items() if spec.input_dtype == "float32"])
def test_classes_and_input_channels_can_be_chosen(name: str) -> None:
    with torch.device("meta"):
        shape = (BATCH, 2, *ZOO[name].input_shape[1:])
        assert build(name, classes=7, in_channels=2)(torch.zeros(shape)).shape == (BATCH, 7)


def test_the_alphabet_of_the_lstm_can_be_chosen() -> None:
    model = build("char_lstm", classes=5, in_channels=90)
    assert model(torch.full((BATCH, 12), 89)).shape == (BATCH, 5)


@pytest.mark.parametrize("name", ZOO)
def test_every_model_is_traced_in_training_mode_and_agrees_with_itself(name: str) -> None:
    model, sample = build_and_sample(name)
    assert model.training
    program = torch.export.export(model, (sample,))
    assert set(program.graph_signature.parameters) == {parameter for parameter, _ in model.named_parameters()}
    if name not in SHAPES_ONLY:
        torch.testing.assert_close(program.module()(sample), model(sample))


@pytest.mark.parametrize(
    "name", ["cnn4", "preresnet18", "mobilenet", "mlp", pytest.param("char_lstm", marks=pytest.mark.thorough)]
)
def test_the_batch_axis_can_be_symbolic(name: str) -> None:
    model, sample = build_and_sample(name)
    program = torch.export.export(model, (sample,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},))
    bigger = torch.cat([sample, sample])
    assert program.module()(bigger).shape == (2 * BATCH, ZOO[name].classes)


@pytest.mark.parametrize("name", sorted(set(ZOO) - SHAPES_ONLY))
def test_every_parameter_gets_a_gradient(name: str) -> None:
    model, sample = build_and_sample(name)
    model(sample).square().sum().backward()
    assert [key for key, p in model.named_parameters() if p.grad is None or not bool(p.grad.abs().sum() > 0)] == []


@pytest.mark.parametrize("name", ["preresnet18", "mobilenet"])
def test_norms_of_perfedmask_keep_no_running_statistics(name: str) -> None:
    assert list(on_meta(name).buffers()) == []


@pytest.mark.parametrize(("name", "norms"), [("vgg11", 8), ("resnet18", 20)])
def test_norms_of_fedspa_are_group_norms(name: str, norms: int) -> None:
    model = on_meta(name)
    groups = [module.num_groups for module in model.modules() if isinstance(module, nn.GroupNorm)]
    assert groups == [32] * norms
    assert list(model.buffers()) == []


def test_the_lstm_reads_the_last_step_and_remembers_the_first() -> None:
    model = CharLSTM(80, 80)
    text = torch.randint(80, (2, 80))
    steps, _ = model.lstm2(model.lstm1(model.embedding(text))[0])
    torch.testing.assert_close(model(text), model.head(steps[:, -1]))
    changed = text.clone()
    changed[:, 70] = (changed[:, 70] + 1) % 80
    assert not torch.equal(model(text), model(changed))


def test_the_two_lstm_layers_may_have_widths_of_their_own() -> None:
    assert CharLSTM(80, 80, hidden=(24, 16))(torch.zeros(BATCH, 5, dtype=torch.int64)).shape == (BATCH, 80)


def test_spreading_one_place_is_the_adaptive_average_pool_to_seven_by_seven() -> None:
    features = torch.randn(2, 5, 1, 1)
    assert torch.equal(RepeatSpatially(7)(features), nn.AdaptiveAvgPool2d(7)(features))


def test_cnn4_fits_svhn_with_its_image_size() -> None:
    assert cnn4(10, 3, image_size=32)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_dropout_of_vgg16_changes_no_name() -> None:
    with torch.device("meta"):
        plain, dropped = vgg16(10, 3), vgg16(10, 3, dropout=0.5)
    assert list(plain.state_dict()) == list(dropped.state_dict())
    assert sum(isinstance(module, nn.Dropout) for module in dropped.modules()) == 2


@pytest.mark.parametrize("name", ["cnn4", "lenet5", "mlp", "char_lstm"])
def test_a_seed_gives_the_same_weights_and_another_seed_others(name: str) -> None:
    first, again, other = (dict(build(name, seed=seed).named_parameters()) for seed in (5, 5, 6))
    assert all(torch.equal(first[key], again[key]) for key in first)
    weights = [key for key in first if first[key].dim() > 1]
    assert not any(torch.equal(first[key], other[key]) for key in weights)


def test_cnn4_starts_from_the_narrow_weights_of_fedmrn() -> None:
    weights = torch.cat([p.flatten() for p in build("cnn4").parameters() if p.dim() > 1])
    assert weights.std().item() == pytest.approx(0.01, rel=0.01)


def test_building_leaves_the_random_state_alone() -> None:
    before = torch.random.get_rng_state()
    build("lenet5", seed=3)
    blocks_of("lenet5")
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("wrong", [{"classes": 0}, {"in_channels": -1}, {"seed": -1}, {"seed": 2**63}])
def test_numbers_that_cannot_be_are_named(wrong: dict[str, int]) -> None:
    with pytest.raises(ExportError, match=f"{next(iter(wrong))} is {next(iter(wrong.values()))}"):
        build("mlp", **wrong)


def test_an_unknown_name_gets_the_nearest_one_and_the_list() -> None:
    with pytest.raises(ExportError, match=r"no model 'resnet8'.*Did you mean 'resnet18'\?.*mobilenet"):
        build("resnet8")
    with pytest.raises(ExportError, match=r"no model '\?'.*zoo. Take one of"):
        blocks_of("?")


USER_MODULE = """
import torch
from torch import nn

class Small(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(2, width)

def make():
    return Small(3)

def broken():
    raise ValueError("no such\\n  width")

def leaves():
    raise SystemExit(3)

def needs(width):
    return Small(width)

def wrong():
    return {"model": 1}

built = Small()
number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module of the user in the current directory, under a name that no other test has imported."""
    name = f"user_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(USER_MODULE)
    monkeypatch.chdir(tmp_path)
    return name


def test_the_users_factory_is_found_in_the_current_directory_and_seeded(module: str) -> None:
    path, state = list(sys.path), torch.random.get_rng_state()
    first, again, other = (load_factory(f"{module}:make", seed=seed) for seed in (1, 1, 2))
    assert sys.path == path
    assert torch.equal(torch.random.get_rng_state(), state)
    weights = [next(model.parameters()) for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert next(load_factory(f"{module}:Small").parameters()).shape == (4, 2)


@pytest.mark.parametrize("target", ["", "nets", "nets:", ":make", "a.b.make", "nets:make()", "a/b.py:make", "a..b:c"])
def test_a_target_of_the_wrong_form_is_refused_before_anything_is_imported(target: str) -> None:
    with pytest.raises(ExportError, match=r"does not name a model factory.*package\.module:factory"):
        load_factory(target)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("missing", r"has no 'missing'. Its callables are Small, make,"),
        ("Small.missing", r"has no 'Small\.missing'"),
        ("number", r"number is int, which cannot be called. Name a function"),
        ("built", r"already built, not a factory. Name a function"),
        ("wrong", r"returned dict, not a torch\.nn\.Module. Let the factory return"),
        ("broken", r"failed with ValueError: no such width. It is called without arguments"),
        ("needs", r"failed with TypeError: .*'width'. It is called without arguments"),
        ("leaves", r"failed with SystemExit: 3"),
    ],
)
def test_a_factory_that_does_not_work_is_explained(module: str, factory: str, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        load_factory(f"{module}:{factory}")


@pytest.mark.parametrize("target", ["no_such_package.nets:make", "export.zoo.no_such_module:make"])
def test_a_module_that_is_not_there_is_named(target: str) -> None:
    with pytest.raises(ExportError, match=r"there is no module '.*no_such_\w+'. Check the spelling"):
        load_factory(target)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_dependency", r"needs 'no_such_dependency', which is not installed. Install"),
        ("1 / 0", r"failed with ZeroDivisionError: division by zero. Run `python -c 'import "),
        ("def make(:", r"failed with SyntaxError"),
        ("raise SystemExit", r"failed with SystemExit\. Run"),
    ],
)
def test_a_module_that_cannot_be_imported_is_explained(module: str, source: str, message: str) -> None:
    Path(f"{module}.py").write_text(source)
    with pytest.raises(ExportError, match=message) as raised:
        load_factory(f"{module}:make")
    assert raised.value.__cause__ is not None
