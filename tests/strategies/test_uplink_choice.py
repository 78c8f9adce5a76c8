"""What travels up: every form comes back as the new values that the device meant, and no other form is taken."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import SchemaError, WireFormatError
from edgefl.local_rules import CompressedSgd, Descent, MaskedNoise, Sgd, TrainingInput, rule_of
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.masked_noise import Masking, MaskKind, NoiseDistribution
from edgefl.masks import Array, Mask, full_mask, gather, leading_channels, random_channels
from edgefl.model_graph import ModelGraph
from edgefl.strategies import ClientUpdate, FedAvg, Model, RunningMean, UplinkKind, strategy_of
from edgefl.strategies.compressed_uplink import CompressionSettings
from edgefl.strategies.one_bit_uplinks import NoiseSettings
from edgefl.strategies.update_checks import movement
from edgefl.strategies.uplink import Uplink
from edgefl.strategies.uplink_choice import UplinkChoice
from edgefl.wire import Bits, Dense, Payload, Sparse
from examples.networks import cnn4
from tests.random_models import masked_models, masks
from tests.strategies.rounds import ROUND_CONTEXT, changes_of, random_weights, slow_mean
from tests.strategies.wired import Wired, order_of, wired

CHOICES = [
    *(UplinkChoice(sent=sent) for sent in UplinkKind),
    UplinkChoice(sent=UplinkKind.MASKED_NOISE, noise=NoiseSettings(noise_masks=MaskKind.SIGNED, noise_bound=0.3)),
    UplinkChoice(sent=UplinkKind.MASKED_NOISE, noise=NoiseSettings(noise_masking=Masking.DETERMINISTIC)),
    UplinkChoice(
        sent=UplinkKind.RANDOM_SUBSAMPLE, compression=CompressionSettings(sent_share=0.5, subsample_unbiased=False)
    ),
    UplinkChoice(sent=UplinkKind.TOP_K, compression=CompressionSettings(sent_share=0.5)),
]
GRAPH = cnn4()
BASE = random_weights(GRAPH, 0, 0.1)
NAME = "conv2.weight"


def made(choice: UplinkChoice, rate: float = 0.1) -> Uplink:
    return choice.build(Descent(learning_rate=rate, momentum=0.5))


def sent_by(uplink: Uplink, mask: Mask, base: Mapping[str, Array], **how: Any) -> Wired:
    return wired(order_of(mask, uplink.rule), base, **how)


def meant(choice: UplinkChoice, found: Wired) -> dict[str, Array]:
    """The new values that the device's payloads stand for, made from its own part, tensor by tensor."""
    rule, update, part = rule_of(found.client_update.rule), found.update, found.part
    values = {name: update.weights[name] for name in part.mask.trained_tensors}
    if isinstance(rule, CompressedSgd):
        compressor = rule.build()
        for name in weight_tensors(part.mask):
            change = compressor.expand(name, update.tensors, part.mask.shapes[name], part.seed)
            values[name] = part.weights[name] + np.where(part.mask.held.get(name, True), change, 0)
    return values


@given(masked_models(), st.sampled_from(CHOICES), st.integers(0, 2**64 - 1))
def test_what_arrives_is_what_the_device_meant(model: tuple[ModelGraph, Mask], choice: UplinkChoice, seed: int) -> None:
    graph, mask = model
    base = random_weights(graph, 3)
    uplink = made(choice)
    found = sent_by(uplink, mask, base, seed=seed)
    uplink.check(found.client_update)
    values = uplink.values(found.client_update)
    assert values.mask is mask
    assert set(values.tensors) == set(mask.trained_tensors)
    for name, expected in meant(choice, found).items():
        payload = values.tensors[name]
        assert isinstance(payload, Dense)
        assert payload.array.dtype == np.float32
        assert np.array_equal(payload.array, expected), name
        assert not payload.array[~mask.held.get(name, np.ones(payload.shape, np.bool_))].any()


@settings(max_examples=30)
@given(masked_models(), st.sampled_from(CHOICES))
def test_what_is_not_held_or_not_kept_or_not_trained_never_moves(
    model: tuple[ModelGraph, Mask], choice: UplinkChoice
) -> None:
    graph, mask = model
    before = Model(graph, random_weights(graph, 3))
    strategy = FedAvg(descent=Descent(), uplinks=choice)
    found = sent_by(strategy.uplink, mask, before.weights)
    after = strategy.combine(before, [found.client_update], ROUND_CONTEXT)
    for name, array in before.weights.items():
        touched = np.zeros(array.shape, np.bool_)
        if name in mask.trained_tensors:
            touched[mask.index(name)] = mask.held.get(name, True)
        assert np.array_equal(after.weights[name][~touched], array[~touched]), name


@settings(max_examples=30)
@given(st.data(), masked_models(), st.sampled_from(CHOICES))
def test_an_average_of_different_masks_is_the_slow_loop_over_their_holders(
    data: st.DataObject, model: tuple[ModelGraph, Mask], choice: UplinkChoice
) -> None:
    graph, first = model
    before = Model(graph, random_weights(graph, 3))
    strategy = FedAvg(descent=Descent(), uplinks=choice)
    found = [
        sent_by(strategy.uplink, mask, before.weights, seed=seed, samples=samples, trust=trust)
        for mask, seed, samples, trust in ((first, 5, 30, 1.0), (data.draw(masks(graph)), 6, 10, 0.5))
    ]
    plain = [
        dataclasses.replace(one.client_update, tensors={n: Dense(a) for n, a in meant(choice, one).items()})
        for one in found
    ]
    exact, size = slow_mean(before, plain)
    combined = strategy.combine(before, [one.client_update for one in found], ROUND_CONTEXT)
    for name, array in combined.weights.items():
        assert np.all(np.abs(array - exact[name]) <= 1e-6 * (np.abs(exact[name]) + size[name]) + 1e-7), name


@pytest.mark.parametrize("choice", CHOICES, ids=lambda c: f"{c.sent}")
def test_an_old_update_moves_the_model_by_what_it_learned(choice: UplinkChoice) -> None:
    """What is sent is relative to the model that the device was given, not to the one of now."""
    mask, now = leading_channels(GRAPH, 0.5), Model(GRAPH, random_weights(GRAPH, 9, 0.1))
    strategy = FedAvg(uplinks=choice)
    found = sent_by(strategy.uplink, mask, BASE)
    values = strategy.uplink.values(found.client_update).tensors[NAME]
    assert isinstance(values, Dense)
    change = values.array - gather(mask, BASE)[NAME]
    moved = gather(mask, strategy.combine(now, [found.client_update], ROUND_CONTEXT).weights)[NAME]
    assert np.allclose(moved - gather(mask, now.weights)[NAME], change, atol=1e-6)


@settings(max_examples=20)
@given(masked_models(), st.sampled_from(CHOICES))
def test_movement_is_the_norm_of_what_is_meant(model: tuple[ModelGraph, Mask], choice: UplinkChoice) -> None:
    graph, mask = model
    base = random_weights(graph, 3)
    strategy = FedAvg(descent=Descent(), uplinks=choice)
    found = sent_by(strategy.uplink, mask, base).client_update
    values = strategy.uplink.values(found)
    exact = math.fsum(v**2 for name in values.tensors for v in changes_of(Model(graph, base), values, name).values())
    assert strategy.movement(found) == pytest.approx(math.sqrt(exact), rel=1e-5, abs=1e-6)


def test_every_average_works_on_bits() -> None:
    noise = UplinkChoice(sent=UplinkKind.MASKED_NOISE)
    parts = [leading_channels(GRAPH, 0.5), full_mask(GRAPH), random_channels(GRAPH, 0.5, np.random.default_rng(0))]
    model = Model(GRAPH, BASE)
    averages: list[dict[str, Any]] = [{}, {"average": "median"}, {"average": "trimmed"}]
    for average in [*averages, {"average": "clipped", "clip_update_norm": 1}]:
        strategy = strategy_of("fedavg", {"sent": "masked_noise", **average})
        found = [sent_by(made(noise), mask, BASE, seed=n).client_update for n, mask in enumerate(parts)]
        after = strategy.combine(model, found, ROUND_CONTEXT).weights[NAME]
        assert 0 < np.abs(after - BASE[NAME]).max() <= 0.01 + 1e-6


# What strangers send


HALF = leading_channels(GRAPH, 0.5)
SHAPE = HALF.shapes[NAME]
SIZE = math.prod(SHAPE)
SCALE = f"{NAME}:scale"


def ones(*shape: int, dtype: Any = np.float32, value: float = 1.0) -> Dense:
    return Dense(np.full(shape, value, dtype))


def flags(*shape: int) -> Bits:
    return Bits.of(np.ones(shape, np.bool_))


def entries(count: int, shape: tuple[int, ...] = SHAPE, dtype: Any = np.float32, value: float = 1.0) -> Sparse:
    return Sparse.at(shape, np.arange(count), np.full(count, value, dtype))


WRONG_SIGNS: list[tuple[str, Payload, str]] = [
    (NAME, ones(*SHAPE), "codec dense, and the plan says bits|has shape"),
    (NAME, flags(SIZE + 1), "has shape"),
    (NAME, entries(3), "codec sparse, and the plan says bits|has shape"),
    (SCALE, ones(3), r"has shape \(3,\), and the plan says"),
    (SCALE, ones(), r"has shape \(\), and the plan says"),
    (SCALE, flags(1), "codec bits, and the plan says dense|has shape"),
]
WRONG_SCALES = [
    (SCALE, -1.0, "holds a scale below zero"),
    (SCALE, 2e18, "holds a number beyond"),
    (SCALE, math.inf, "holds a number beyond"),
    (SCALE, math.nan, "holds a number beyond"),
]
WRONG: dict[UplinkKind, list[tuple[str, Payload, str]]] = {
    UplinkKind.VALUES: [(NAME, flags(*SHAPE), "codec bits, and the plan says dense")],
    UplinkKind.MASKED_NOISE: [
        (NAME, ones(*SHAPE), "codec dense, and the plan says bits"),
        (NAME, flags(*GRAPH.tensor[NAME].shape), "has shape"),
        (NAME, flags(SIZE), "has shape"),
        (NAME, entries(4), "codec sparse, and the plan says bits"),
    ],
    UplinkKind.STOCHASTIC_SIGN: [*WRONG_SIGNS, (NAME, flags(SIZE), "has shape")],
    UplinkKind.SCALED_SIGN: [
        *WRONG_SIGNS,
        (SCALE, ones(1, dtype=np.float64), "dtype float64, and the plan says float32"),
    ],
    UplinkKind.TERNGRAD: [
        (NAME, ones(SIZE, dtype=np.uint8), "has shape"),
        (NAME, ones(-(-SIZE // 5)), "dtype float32, and the plan says uint8"),
        (NAME, ones(-(-SIZE // 5), dtype=np.uint8, value=243), "holds a byte above 242"),
        (NAME, flags(-(-SIZE // 5)), "codec bits, and the plan says dense"),
    ],
    UplinkKind.TOP_K: [
        (NAME, ones(*SHAPE), "codec dense, and the plan says sparse"),
        (NAME, entries(SIZE), "entries, but 138 are kept"),
        (NAME, entries(0), "has 0 entries, but 138 are kept"),
        (NAME, entries(138, (SIZE,)), "has shape"),
        (NAME, entries(138, dtype=np.float64), "dtype float64, and the plan says float32"),
        (NAME, entries(138, value=math.nan), "holds a number beyond"),
        (NAME, entries(138, value=-3e18), "holds a number beyond"),
    ],
    UplinkKind.DRIVE: WRONG_SIGNS,
    UplinkKind.EDEN: WRONG_SIGNS,
    UplinkKind.RANDOM_SUBSAMPLE: [
        (NAME, ones(139), r"has shape \(139,\), and the plan says \(138,\)"),
        (NAME, ones(*SHAPE), "has shape"),
        (NAME, entries(138), "and the plan says"),
        (NAME, ones(138, value=math.nan), "holds a number beyond"),
        (NAME, ones(138, dtype=np.float16), "dtype float16, and the plan says float32"),
    ],
}


def forged(sent: UplinkKind, name: str, payload: Payload) -> tuple[Uplink, ClientUpdate]:
    """An honest upload with one payload replaced."""
    uplink = made(UplinkChoice(sent=sent))
    honest = sent_by(uplink, HALF, BASE).client_update
    assert name in honest.tensors
    return uplink, dataclasses.replace(honest, tensors={**honest.tensors, name: payload})


@pytest.mark.parametrize(
    ("sent", "name", "payload", "message"),
    [(sent, *case) for sent, cases in WRONG.items() for case in cases],
)
def test_a_wrong_payload_is_refused(sent: UplinkKind, name: str, payload: Payload, message: str) -> None:
    uplink, forgery = forged(sent, name, payload)
    with pytest.raises(WireFormatError, match=message) as caught:
        uplink.check(forgery)
    assert repr(name) in str(caught.value)
    assert caught.value.fix


@pytest.mark.parametrize(
    "sent", [UplinkKind.STOCHASTIC_SIGN, UplinkKind.SCALED_SIGN, UplinkKind.TERNGRAD, UplinkKind.DRIVE, UplinkKind.EDEN]
)
@pytest.mark.parametrize(("name", "value", "message"), WRONG_SCALES)
def test_a_wrong_scale_is_refused(sent: UplinkKind, name: str, value: float, message: str) -> None:
    honest = sent_by(made(UplinkChoice(sent=sent)), HALF, BASE).client_update.tensors[name]
    uplink, forgery = forged(sent, name, ones(*honest.shape, value=value))
    with pytest.raises(WireFormatError, match=message):
        uplink.check(forgery)


@pytest.mark.parametrize("sent", UplinkKind)
def test_no_payload_may_be_missing_added_or_in_another_form(sent: UplinkKind) -> None:
    uplink = made(UplinkChoice(sent=sent))
    honest = sent_by(uplink, HALF, BASE).client_update
    uplink.check(honest)

    def refused(tensors: Mapping[str, Payload], message: str) -> None:
        with pytest.raises(WireFormatError, match=message):
            uplink.check(dataclasses.replace(honest, tensors=tensors))

    for name, payload in honest.tensors.items():
        refused({n: p for n, p in honest.tensors.items() if n != name}, f"{name}' is missing")
        other = flags(*payload.shape) if isinstance(payload, Dense) else ones(*payload.shape)
        refused({**honest.tensors, name: other}, f"{name}' has codec")
        refused({**honest.tensors, f"{name}:more": payload}, f"{name}:more' is not expected")
    refused({**honest.tensors, "norm1.weight": ones(16, value=math.nan)}, "'norm1.weight' holds a number beyond")
    refused({**honest.tensors, "norm1.weight": ones(32)}, "'norm1.weight' has shape")


@pytest.mark.parametrize("sent", UplinkKind)
def test_a_new_mask_is_refused(sent: UplinkKind) -> None:
    uplink = made(UplinkChoice(sent=sent))
    honest = sent_by(uplink, HALF, BASE).client_update
    with pytest.raises(WireFormatError, match="changes no mask"):
        uplink.check(dataclasses.replace(honest, next_mask=full_mask(GRAPH)))


@pytest.mark.parametrize("sent", UplinkKind)
def test_bits_where_the_mask_holds_nothing_move_nothing(sent: UplinkKind) -> None:
    """A stranger may set them; they mean nothing."""
    held = np.arange(SIZE).reshape(SHAPE) % 2 == 0
    mask = Mask.of(GRAPH, kept=HALF.kept, held={NAME: held})
    uplink = made(UplinkChoice(sent=sent))
    honest = sent_by(uplink, mask, BASE).client_update
    payload = honest.tensors[NAME]
    if isinstance(payload, Bits):
        honest = dataclasses.replace(honest, tensors={**honest.tensors, NAME: flags(*payload.shape)})
    uplink.check(honest)
    mean = RunningMean(Model(GRAPH, BASE))
    mean.add(uplink.values(honest), 1.0)
    found = mean.result()[NAME][HALF.index(NAME)]
    assert np.array_equal(found[~held], BASE[NAME][HALF.index(NAME)][~held])


def test_the_largest_values_that_are_taken_still_give_numbers() -> None:
    for sent in (UplinkKind.SCALED_SIGN, UplinkKind.EDEN, UplinkKind.TERNGRAD):
        honest = sent_by(made(UplinkChoice(sent=sent)), HALF, BASE).client_update.tensors[SCALE]
        uplink, forgery = forged(sent, SCALE, ones(*honest.shape, value=1e18))
        uplink.check(forgery)
        assert movement(uplink.values(forgery)) > 1e18


# Sizes, settings


@pytest.mark.parametrize(
    ("sent", "most"),
    [
        (UplinkKind.VALUES, 32.2),
        (UplinkKind.MASKED_NOISE, 1.15),
        (UplinkKind.STOCHASTIC_SIGN, 1.15),
        (UplinkKind.SCALED_SIGN, 1.15),
        (UplinkKind.DRIVE, 1.15),
        (UplinkKind.EDEN, 1.15),
        (UplinkKind.RANDOM_SUBSAMPLE, 1.1),
        (UplinkKind.TERNGRAD, 1.75),
        (UplinkKind.TOP_K, 1.36),
    ],
)
def test_bits_a_parameter_as_sent(sent: UplinkKind, most: float) -> None:
    """Headers, report and norms included; the header is 3 kB whatever the width."""
    for mask, header in ((full_mask(GRAPH), 0), (leading_channels(GRAPH, 0.5), 3100)):
        body = sent_by(made(UplinkChoice(sent=sent)), mask, BASE).body
        bits = 8 * (len(body) - header) / mask.cost.parameters
        assert most / 1.1 < bits <= most, f"{len(body):,} bytes for {mask.cost.parameters:,} parameters"


def test_settings_reach_the_rule() -> None:
    def rule(**given: Any) -> Any:
        strategy = strategy_of("fedavg", given)
        assert isinstance(strategy, FedAvg)
        return rule_of(strategy.uplink.rule)

    assert isinstance(rule(), Sgd)
    found = rule(sent="masked_noise", noise_masks="signed", noise_bound=0.02, noise_masking="stochastic")
    assert found == MaskedNoise(masks=MaskKind.SIGNED, bound=0.02, masking=Masking.STOCHASTIC)
    assert rule(sent="masked_noise", noise_distribution="gaussian") == MaskedNoise(
        distribution=NoiseDistribution.GAUSSIAN
    )
    found = rule(sent="top_k", sent_share=0.1, learning_rate=0.2)
    assert (found.compressor, found.kept, found.descent) == ("top_k", 0.1, Descent(learning_rate=0.2))
    found = rule(sent="random_subsample", subsample_unbiased=False)
    assert (found.compressor, found.kept, found.unbiased) == ("random_subsample", 0.03, False)
    assert rule(sent="stochastic_sign", sign_scale="l2").sign_scale == "l2"
    assert rule(sent="terngrad", terngrad_clip=1).terngrad_clip == 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sent": "edem"}, r"'settings.sent' must be one of .* Did you mean 'eden'"),
        ({"noise_bound": 0.02}, r"'settings.noise_bound' is 0.02, but devices send 'values'"),
        (
            {"sent": "eden", "noise_distribution": "gaussian"},
            r"'settings.noise_distribution' is 'gaussian', but devices send 'eden'",
        ),
        (
            {"sent": "masked_noise", "noise_distribution": "normal"},
            r"must be one of 'uniform', 'gaussian'",
        ),
        ({"sent": "eden", "noise_bound": 0.02}, r"'settings.noise_bound' is 0.02, but devices send 'eden'"),
        ({"sent": "top_k", "sent_share": 0}, r"'settings.sent_share' must be a share above 0"),
    ],
)
def test_a_bad_choice_is_told_what_is_wrong(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        strategy_of("fedavg", given)


def test_noise_is_that_of_the_plans_seed_whatever_the_upload_says() -> None:
    uplink = made(UplinkChoice(sent=UplinkKind.MASKED_NOISE))
    found = sent_by(uplink, HALF, BASE, seed=77)
    one, other = (uplink.values(dataclasses.replace(found.client_update, seed=seed)) for seed in (77, 78))
    assert np.array_equal(array_of(one), found.update.weights[NAME])
    assert not np.array_equal(array_of(other), found.update.weights[NAME])


def array_of(client_update: ClientUpdate) -> Array:
    payload = client_update.tensors[NAME]
    assert isinstance(payload, Dense)
    return payload.array


def test_a_part_is_rebuilt_from_the_model_it_was_cut_from() -> None:
    """Random channels: the noise has the shape of the part, and is added to the part's own entries."""
    mask = random_channels(GRAPH, 0.5, np.random.default_rng(4))
    uplink = made(UplinkChoice(sent=UplinkKind.MASKED_NOISE))
    found = sent_by(uplink, mask, BASE)
    part = TrainingInput(mask, gather(mask, BASE), 1)
    assert np.array_equal(part.weights[NAME], found.part.weights[NAME])
    assert np.array_equal(array_of(uplink.values(found.client_update)), found.update.weights[NAME])
