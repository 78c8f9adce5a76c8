"""A Raspberry Pi computes what an x86 computes: the same tasks here and on an emulated ARM, by the real trainer.

Sums of floats are made in another order there, so losses and weights agree but for the last places. Everything that is
drawn agrees bit for bit, and so must everything that is chosen by it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from device_runtime.checkpoint import load_checkpoint
from device_runtime.trainer import TrainingTask
from edgefl.local_rules import State
from edgefl.values import LocalWork, Provenance, RuleSettings, Setting, dumps
from edgefl.wire import Bits, Body, BodyKind, Dense, ResultBody, decode_result, encode, encode_mask
from tests.device_runtime.emulated_pi import emulated_pi, made_once, why_not
from tests.device_runtime.federation import bundle, digits, task_of
from tests.device_runtime.on_the_pi import PACKAGES, Facts, carry_out, read_facts

pytestmark = pytest.mark.slow

RULES: dict[str, dict[str, Setting]] = {
    "sgd": {"learning_rate": 0.05, "momentum": 0.9},
    "masked_noise": {"learning_rate": 0.1},
    "channel_pruning": {"learning_rate": 0.05, "accuracy_threshold": 0.0},
    "shared_layers": {"learning_rate": 0.05, "momentum": 0.9},
    "maml": {"learning_rate": 0.1, "variant": "first_order"},
    "weight_pruning": {"learning_rate": 0.05, "accuracy_threshold": 0.0, "distance": 0.0},
}
WORK = LocalWork(epochs=2, batch_size=32)
STEPS = 2 * 12  # 360 of 400 samples, the last batch of 8


@dataclass(frozen=True, slots=True)
class Side:
    """What one machine made of the tasks."""

    folder: Path

    def facts(self, rule: str) -> Facts:
        return read_facts(self.folder / rule)

    def report(self, rule: str) -> ResultBody:
        return decode_result((self.folder / rule / "report").read_bytes(), bundle().graph)

    def state(self, rule: str) -> State:
        path = self.folder / rule / f"{rule}.checkpoint.safetensors"
        known = load_checkpoint(path, rule, bundle().graph)
        assert known is not None, f"{path} cannot be read"
        return known[1]


def write_task(task: TrainingTask, folder: Path) -> None:
    """Write what a device would download."""
    assert task.inference is not None
    weights = Body(BodyKind.WEIGHTS, {name: Dense(array) for name, array in task.weights.items()})
    contents = {
        "plan.json": dumps(task.plan).encode(),
        "model_graph.json": dumps(task.mask.graph).encode(),
        "mask": encode_mask(task.mask),
        "weights": encode(weights),
        "train.onnx": task.graph,
        "infer.onnx": task.inference,
    }
    folder.mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def write_samples(path: Path) -> None:
    train, test = digits().train, digits().test
    np.savez(path, x=train.features[:400], y=train.labels[:400], x_test=test.features[:1], y_test=test.labels[:1])


def do_everything(folder: Path) -> None:
    tasks = folder / "tasks"
    tasks.mkdir()
    write_samples(tasks / "samples.npz")
    for name, settings in RULES.items():
        write_task(task_of(task_id=name, rule=RuleSettings(name=name, settings=settings), work=WORK), tasks / name)
    carry_out(tasks, folder / "here")
    emulated_pi(PACKAGES).run("tests.device_runtime.on_the_pi", str(tasks), str(folder / "pi"))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Do the tasks on both machines; once, also if several processes run these tests."""
    if reason := why_not():
        pytest.skip(reason)
    own = tmp_path_factory.getbasetemp()
    return made_once((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "emulated-pi", do_everything)


@pytest.fixture
def here(done: Path) -> Side:
    return Side(done / "here")


@pytest.fixture
def pi(done: Path) -> Side:
    return Side(done / "pi")


def test_the_pi_is_an_arm_machine_with_the_packages_of_this_one(here: Side, pi: Side) -> None:
    facts = pi.facts("sgd")
    assert facts.architecture == "aarch64"
    assert facts.versions == here.facts("sgd").versions


def test_the_pi_does_without_instruments_that_it_does_not_have(pi: Side) -> None:
    telemetry = pi.report("sgd").result.telemetry
    assert telemetry.energy is not None
    assert telemetry.energy.provenance is Provenance.ESTIMATED
    assert telemetry.memory.peak_bytes > telemetry.memory.baseline_bytes > 0


@pytest.mark.parametrize("rule", RULES)
def test_batches_and_random_numbers_are_the_same_bits(rule: str, here: Side, pi: Side) -> None:
    ours, theirs = here.facts(rule), pi.facts(rule)
    assert theirs.batches == ours.batches
    assert len(set(ours.batches)) == WORK.epochs
    assert theirs.numbers == ours.numbers


@pytest.mark.parametrize("rule", RULES)
def test_losses_agree(rule: str, here: Side, pi: Side) -> None:
    ours, theirs = np.array(here.facts(rule).losses), np.array(pi.facts(rule).losses)
    assert len(ours) == STEPS
    assert ours[-6:].mean() < 0.95 * ours[:6].mean()  # it learns: the losses are of more than the first weights
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=0)  # 6e-7 where it was measured; it grows with the steps


@pytest.mark.parametrize("rule", RULES)
def test_a_report_from_the_pi_is_read_here(rule: str, here: Side, pi: Side) -> None:
    ours, theirs = here.report(rule), pi.report(rule)
    assert theirs.result.steps == STEPS
    assert theirs.result.accuracy == ours.result.accuracy
    assert (theirs.mask, theirs.seed) == (ours.mask, ours.seed)
    assert theirs.tensors.keys() == ours.tensors.keys()
    for name, payload in ours.tensors.items():
        other = theirs.tensors[name]
        assert type(other) is type(payload), name
        if isinstance(payload, Dense) and isinstance(other, Dense):
            np.testing.assert_allclose(other.array, payload.array, rtol=0, atol=3e-5, err_msg=name)


def test_masked_noise_makes_the_same_noise_and_sends_the_same_bits(here: Side, pi: Side) -> None:
    ours, theirs = here.state("masked_noise").memory, pi.state("masked_noise").memory
    sent, received = here.report("masked_noise").tensors, pi.report("masked_noise").tensors
    masked = [name for name, payload in sent.items() if isinstance(payload, Bits)]
    assert masked
    likely_flips = 0.0
    for name in masked:
        noise = ours[f"noise:{name}"]
        assert theirs[f"noise:{name}"].tobytes() == noise.tobytes(), name
        chances = [np.clip(side[f"update:{name}"] / noise, 0, 1).astype(np.float64) for side in (ours, theirs)]
        likely_flips += float(np.abs(chances[0] - chances[1]).sum())
    # A bit is drawn with a chance that comes from floats, so it differs where the draw falls between the chances of the
    # two machines. This is how many of the bits do on average: 2e-4 where it was measured, so none is expected to.
    assert likely_flips < 0.01
    flipped = {name: int((flags_of(sent[name]) != flags_of(received[name])).sum()) for name in masked}
    assert sum(flipped.values()) == 0, flipped


def test_channel_pruning_gives_up_the_same_channels(here: Side, pi: Side) -> None:
    ours, theirs = here.report("channel_pruning").next_mask, pi.report("channel_pruning").next_mask
    assert ours is not None
    assert theirs is not None
    assert ours.cost.parameters < 0.8 * ours.graph.parameters
    assert theirs.digest == ours.digest


def flags_of(payload: object) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    assert isinstance(payload, Bits)
    return payload.to_bool()
