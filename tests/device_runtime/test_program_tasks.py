"""Plans with programs: what a device downloads for them, what it refuses, and which engine goes on with a plan."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from device_runtime import trainer as trainer_module
from device_runtime.agent import task_artifacts
from device_runtime.agent.own_capabilities import own_capabilities
from device_runtime.agent.task_artifacts import description_digests, load_task, task_digests
from device_runtime.agent.task_worker import TaskSize, TrainerInProcess
from device_runtime.checkpoint import origin_of
from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.engines.onnx import OnnxEngine, OnnxStep
from device_runtime.engines.program_check import check_inference_program, check_training_program, check_version
from device_runtime.personal_model import PersonalModel, load_personal, save_personal
from device_runtime.refusal import RefusalError
from edgefl.artifacts.artifact_store import ArtifactStore
from edgefl.errors import ExportError
from edgefl.local_rules import RULES
from edgefl.masks import Array, Mask, freeze, full_mask, leading_channels
from edgefl.values import (
    Capabilities,
    ClientPlan,
    GraphFormat,
    Program,
    ProgramRole,
    Reason,
    RuleSettings,
    digest_of,
    dumps,
)
from edgefl.wire import decode_result
from tests.device_runtime.agent.test_agent import agent_of
from tests.device_runtime.coordinator import KEY, Coordinator
from tests.device_runtime.federation import bundle, plan_of, task_of, trainer
from tests.device_runtime.programs import PTE, inference_document, training_document
from tests.values.samples import CAPABILITIES, PROFILE

ONNX, EXECUTORCH = GraphFormat.ONNX, GraphFormat.EXECUTORCH


def half() -> Mask:
    return leading_channels(bundle().graph, 0.5)


def offered(coordinator: Coordinator, mask: Mask, train: Program, infer: Program | None = None) -> ClientPlan:
    """A plan whose programs the coordinator has."""
    named = {"program": coordinator.keep(dumps(train).encode())}
    if infer is not None:
        named["inference_program"] = coordinator.keep(dumps(infer).encode())
    return coordinator.offer(mask, **named)


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    left = tuple(name for name in ("onnx", "executorch") if name not in missing)
    for module in (task_artifacts, trainer_module):
        monkeypatch.setattr(module, "installed_engines", lambda: left)


class GraphsAsPrograms(OnnxEngine):
    """An engine that runs programs, whose files are ONNX graphs here."""

    format = EXECUTORCH

    def train_step(
        self, graph: bytes, mask: Mask, *, labels: Array | None = None, program: Program | None = None
    ) -> OnnxStep:
        assert program is not None
        return super().train_step(graph, mask, labels=labels)


def test_a_program_of_the_same_widths_and_a_larger_cut_fits() -> None:
    mask = half()
    check_training_program(training_document(mask), mask)
    check_training_program(training_document(mask), freeze(mask, [mask.graph.trainable_layers[1]]))
    check_inference_program(inference_document(mask), mask)


LIES: dict[str, Callable[[Program], Program]] = {
    "belongs to another model": lambda p: replace(p, spec=replace(p.spec, model=digest_of(b"another"))),
    "is to infer, not to train": lambda p: replace(p, spec=replace(p.spec, role=ProgramRole.INFER, trained=())),
    "does not train layer": lambda p: replace(p, spec=replace(p.spec, trained=p.spec.trained[1:])),
    "channels of": lambda p: replace(p, spec=replace(p.spec, widths=dict.fromkeys(p.spec.widths, 1))),
    "compiled for None channels": lambda p: replace(p, spec=replace(p.spec, widths={})),
    "no input 'sample_weights'": lambda p: replace(p, inputs=tuple(n for n in p.inputs if n != "sample_weights")),
    "no input": lambda p: replace(p, inputs=p.inputs[:-1]),
    "unknown input 'password'": lambda p: replace(p, inputs=(*p.inputs, "password")),
    "names an input twice": lambda p: replace(p, inputs=(*p.inputs, "x")),
    "no output 'loss'": lambda p: replace(p, outputs=p.outputs[1:]),
    "no output 'grad:": lambda p: replace(p, outputs=p.outputs[:2]),
    "unknown output 'grad:nothing'": lambda p: replace(p, outputs=(*p.outputs, "grad:nothing")),
}


@pytest.mark.parametrize("problem", LIES)
def test_a_description_that_does_not_fit_the_mask_is_refused_before_the_file_is_downloaded(
    problem: str, tmp_path: Path
) -> None:
    coordinator, mask = Coordinator(), half()
    plan = offered(coordinator, mask, LIES[problem](training_document(mask)))
    store = ArtifactStore(tmp_path)
    for digest in description_digests(plan, EXECUTORCH):
        store.put(coordinator.artifacts[digest])
    worker = TrainerInProcess(lambda device: trainer(tmp_path), tmp_path, tmp_path, engine=EXECUTORCH)
    with pytest.raises(RefusalError, match=problem) as caught:
        worker.size(plan, threading.Event(), memory_bytes=None)
    assert caught.value.reason is Reason.UNSUPPORTED


def test_an_inference_program_of_another_width_is_refused() -> None:
    with pytest.raises(ExportError, match="but the mask keeps"):
        check_inference_program(inference_document(half()), full_mask(bundle().graph))


def test_a_program_of_a_newer_compiler_is_refused() -> None:
    made = training_document(half(), made_with="executorch 1.10.0")
    with pytest.raises(ExportError, match=r"ExecuTorch 1.10.0, but 1.9.2 is installed"):
        check_version(made, "1.9.2")
    check_version(made, "1.10.2+cpu")
    with pytest.raises(ExportError, match="not for ExecuTorch"):
        check_version(replace(made, made_with="a compiler"), "1.9.2")


def test_an_executorch_device_downloads_programs_instead_of_graphs() -> None:
    coordinator, mask = Coordinator(), half()
    plan = offered(coordinator, mask, training_document(mask), inference_document(mask))
    assert description_digests(plan, EXECUTORCH) == (plan.model, plan.mask_body, plan.program, plan.inference_program)
    assert not {plan.graph, plan.inference} & set(task_digests(plan, EXECUTORCH))
    coordinator.keep(PTE)
    task = load_task(plan, coordinator.artifacts.__getitem__, EXECUTORCH, down_bytes=0)
    assert (task.graph, task.inference) == (PTE, PTE)
    assert task.program == training_document(mask)
    assert task.inference_program == inference_document(mask)


def test_an_onnxruntime_device_takes_the_graphs_of_a_plan_with_programs() -> None:
    coordinator, mask = Coordinator(), half()
    plan = offered(coordinator, mask, training_document(mask), inference_document(mask))
    assert not {plan.program, plan.inference_program} & set(task_digests(plan, ONNX))
    task = load_task(plan, coordinator.artifacts.__getitem__, ONNX, down_bytes=0)
    assert task.program is task.inference_program is None
    assert task.graph == coordinator.artifacts[str(plan.graph)]


@pytest.mark.parametrize("missing", [(), ("onnx",)])
def test_without_an_inference_program_onnxruntime_evaluates_if_it_is_installed_and_the_model_is_kept_anyway(
    missing: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, *missing)
    coordinator, mask = Coordinator(), half()
    graph = coordinator.artifacts[str(coordinator.offer(mask).graph)]
    named = {"program": coordinator.keep(dumps(training_document(mask, graph)).encode())}
    plan = coordinator.offer(mask, rule=RuleSettings(name="local_training", settings={}), **named)
    assert plan.inference in task_digests(plan, EXECUTORCH)
    store = ArtifactStore(tmp_path / "cache")
    for content in coordinator.artifacts.values():
        store.put(content)
    training = trainer(tmp_path / "home", engine=GraphsAsPrograms(ThreadSettings(1)))
    worker = TrainerInProcess(lambda _: training, tmp_path / "cache", tmp_path / "personal", engine=EXECUTORCH)
    body = decode_result(worker.train(plan, threading.Event(), memory_bytes=None, down_bytes=0), mask.graph)
    assert (body.result.accuracy is None) == bool(missing)
    kept = load_personal(tmp_path / "personal")
    assert (kept.task_id, kept.program, kept.format) == (plan.task_id, None, ONNX)


def test_a_plan_without_a_program_is_trained_with_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Programs:
        """An engine that runs programs alone."""

        name, format = "executorch 0", EXECUTORCH

    without(monkeypatch)
    coordinator = Coordinator()
    plan = coordinator.offer(half())
    assert plan.graph in task_digests(plan, EXECUTORCH)
    task = load_task(plan, coordinator.artifacts.__getitem__, EXECUTORCH, down_bytes=0)
    found = trainer(tmp_path, engine=Programs()).run(task)
    assert found.result.accuracy is not None


def test_a_plan_without_a_program_is_refused_where_onnxruntime_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "onnx")
    with pytest.raises(RefusalError, match="names no ExecuTorch program") as caught:
        task_digests(Coordinator().offer(half()), EXECUTORCH)
    assert caught.value.reason is Reason.UNSUPPORTED


def test_the_size_of_a_task_is_that_of_its_program() -> None:
    mask = freeze(half(), [bundle().graph.trainable_layers[0]])
    plan = plan_of(mask)
    small = TaskSize.of(plan, mask, samples=10)
    large = TaskSize.of(plan, mask, samples=10, program=training_document(half(), batch_size=64))
    assert large.activation_bytes > 6 * small.activation_bytes  # 64 samples and not 10, and more layers trained
    assert large.trained_parameters > small.trained_parameters


def test_a_checkpoint_is_used_whatever_program_the_plan_names() -> None:
    plan = plan_of(half())
    named = replace(plan, program=digest_of(b"a"), inference_program=digest_of(b"b"))
    assert origin_of(named, 10) == origin_of(plan, 10)
    assert origin_of(replace(plan, rule=RuleSettings(name="ditto", settings={})), 10) != origin_of(plan, 10)


def test_a_personal_model_keeps_the_description_of_its_program(tmp_path: Path) -> None:
    mask, task = half(), task_of(half())
    model = PersonalModel(mask, task.weights, PTE, 3, program=inference_document(mask))
    save_personal(tmp_path, model)
    found = load_personal(tmp_path)
    assert (found.program, found.inference, found.format) == (inference_document(mask), PTE, EXECUTORCH)


def test_onnxruntime_does_not_take_programs() -> None:
    engine, mask = open_engine("onnx", ThreadSettings(1)), half()
    with pytest.raises(ExportError, match="does not run ExecuTorch programs"):
        engine.train_step(PTE, mask, program=training_document(mask))
    with pytest.raises(ExportError, match="does not run ExecuTorch programs"):
        engine.predictor(PTE, program=inference_document(mask))


def test_an_executorch_device_does_not_name_rules_that_change_widths() -> None:
    can = own_capabilities("executorch")
    assert [engine.format for engine in can.engines] == [EXECUTORCH]
    missing = {"channel_pruning", "pruned_noise", "channel_regrow", "ordered_dropout", "probabilistic_masks"}
    missing |= {"base_networks"}
    assert {name for name in can.rules if "." not in name} == set(RULES) - missing
    assert can.batch_sizes is None


@pytest.mark.parametrize("before", [CAPABILITIES, None])
def test_a_device_whose_engine_changed_sends_its_profile_of_that_engine(
    before: Capabilities | None, tmp_path: Path
) -> None:
    coordinator = Coordinator()
    other = replace(PROFILE, engine="executorch 1.4.1")
    (engine, *_) = CAPABILITIES.engines
    changed = replace(CAPABILITIES, engines=(replace(engine, name="executorch", format=EXECUTORCH),))
    for told, profile in ((before, PROFILE), (changed, other), (changed, other)):
        agent_of(tmp_path / "home", coordinator).enrol("http://here", profile, KEY, capabilities=told)
    assert coordinator.capabilities == [changed]
    assert coordinator.profiles == [other]
