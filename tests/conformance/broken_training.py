"""Clients that are broken on purpose: the agent with one mistake each in what it trains and reports."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from device_runtime.agent.own_capabilities import own_capabilities
from device_runtime.local_data import LocalData
from device_runtime.trainer import FinishedTask, Trainer, TrainingTask
from edgefl.local_rules import Batch
from edgefl.local_rules.feature_sums import GRAM, head_size
from edgefl.model_graph import TensorRole
from edgefl.values import RuleSettings
from edgefl.wire import Dense, ResultBody, decode_result, encode_result
from tests.conformance.agent_client import AgentClient


class _OtherPlan(Trainer):
    """Trains another plan than the one it was given."""

    def run(self, task: TrainingTask, stop: threading.Event | None = None) -> FinishedTask:
        return Trainer.run(self, self.changed(task), stop)

    def changed(self, task: TrainingTask) -> TrainingTask:
        return replace(task, plan=replace(task.plan, rule=self.rule(task.plan.rule)))

    def rule(self, rule: RuleSettings) -> RuleSettings:
        return rule


def _without(rule: RuleSettings, *names: str) -> RuleSettings:
    return replace(rule, settings={name: value for name, value in rule.settings.items() if name not in names})


class _OtherReport(Trainer):
    """Sends another body than the one that it made."""

    def run(self, task: TrainingTask, stop: threading.Event | None = None) -> FinishedTask:
        finished = Trainer.run(self, task, stop)
        body = decode_result(finished.body, task.mask.graph)
        return replace(finished, body=encode_result(self.report(body, task, finished), task.mask.graph))

    def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
        return body


class DropsMomentum(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def rule(self, rule: RuleSettings) -> RuleSettings:
            return _without(rule, "momentum", "nesterov")


class ForgetsClipping(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def rule(self, rule: RuleSettings) -> RuleSettings:
            return _without(rule, "clip_norm")


class ForgetsTheSchedule(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def rule(self, rule: RuleSettings) -> RuleSettings:
            return _without(rule, "schedule", "schedule_by", "final_rate")


class IgnoresUnknownSettings(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def rule(self, rule: RuleSettings) -> RuleSettings:
            return _without(rule, "warp")


class SwapsMasks(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def rule(self, rule: RuleSettings) -> RuleSettings:
            swapped = {"binary": "signed", "signed": "binary"}
            return replace(
                rule, settings={name: swapped.get(str(value), value) for name, value in rule.settings.items()}
            )


class ReportsNoSensitivities(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def rule(self, rule: RuleSettings) -> RuleSettings:
            return _without(rule, "sensitivity")


class ReportsRootsOfSums(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            roots = {
                name: Dense(np.sqrt(sent.array))
                for name, sent in body.tensors.items()
                if name.startswith("sensitivity/") and isinstance(sent, Dense)
            }
            return replace(body, tensors={**body.tensors, **roots})


class ForgetsTheClipOfFeatures(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def rule(self, rule: RuleSettings) -> RuleSettings:
            return _without(rule, "clip")


class SendsTheLowerTriangle(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            sent = body.tensors.get(GRAM)
            if not isinstance(sent, Dense):
                return body
            size = head_size(task.mask)
            whole = np.zeros((size, size))
            whole[np.triu_indices(size)] = sent.array
            return replace(body, tensors={**body.tensors, GRAM: Dense(whole.T[np.tril_indices(size)])})


class KeepsTheHeadItDownloaded(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def changed(self, task: TrainingTask) -> TrainingTask:
            return replace(task, extras={})


class WithoutAddedSettings(AgentClient):
    """Not broken, but older."""

    capabilities = staticmethod(lambda: replace(own_capabilities("onnx"), rules=("sgd", "fine_tune", "masked_noise")))


class IgnoresMostSteps(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def changed(self, task: TrainingTask) -> TrainingTask:
            return replace(task, plan=replace(task.plan, work=replace(task.plan.work, most_steps=None)))


class StopsAtTheEndOfAnEpoch(AgentClient):
    class trainer(_OtherPlan):  # noqa: N801
        def changed(self, task: TrainingTask) -> TrainingTask:
            work = task.plan.work
            epochs = work.epochs if work.most_steps is None else 1
            return replace(task, plan=replace(task.plan, work=replace(work, epochs=epochs)))


class RoundsItsSeed(AgentClient):
    """As JavaScript does, whose numbers have 53 bits."""

    class trainer(_OtherReport):  # noqa: N801
        def run(self, task: TrainingTask, stop: threading.Event | None = None) -> FinishedTask:
            rounded = int(float(task.plan.seed)) % 2**64
            return _OtherReport.run(self, replace(task, plan=replace(task.plan, seed=rounded)), stop)

        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            return replace(body, seed=None)


class CountsStepsWrongly(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            return replace(body, result=replace(body.result, steps=body.result.steps + 1))


class ClaimsLongRounds(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            telemetry = body.result.telemetry
            longer = replace(telemetry, latency=replace(telemetry.latency, round_seconds=3600.0))
            return replace(body, result=replace(body.result, telemetry=longer))


class CountsNoTraffic(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            telemetry = body.result.telemetry
            none = replace(telemetry, transfer=replace(telemetry.transfer, down_bytes=0))
            return replace(body, result=replace(body.result, telemetry=none))


class SendsFrozenTensors(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            every = {name: Dense(array) for name, array in finished.weights.items()}
            return replace(body, tensors={**every, **body.tensors})


class KeepsStatistics(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            roles = {tensor.name: tensor.role for tensor in task.mask.graph.tensors}
            kept = {name: sent for name, sent in body.tensors.items() if roles[name] is not TensorRole.STATISTIC}
            return replace(body, tensors=kept)


class SendsItsOldWeights(AgentClient):
    class trainer(_OtherReport):  # noqa: N801
        def report(self, body: ResultBody, task: TrainingTask, finished: FinishedTask) -> ResultBody:
            return replace(body, tensors={name: Dense(task.weights[name]) for name in body.tensors})


class DrawsOtherBatches(AgentClient):
    class data(LocalData):  # noqa: N801
        def epoch(self, seed: int, epoch: int, batch_size: int, **more: Any) -> Iterator[Batch]:
            return LocalData.epoch(self, seed + 1, epoch, batch_size, **more)


class NeverShufflesAgain(AgentClient):
    class data(LocalData):  # noqa: N801
        def epoch(self, seed: int, epoch: int, batch_size: int, **more: Any) -> Iterator[Batch]:
            return LocalData.epoch(self, seed, 0, batch_size, **more)


class DropsOutTheSame(AgentClient):
    """The seed of dropout is that of the first step."""

    class data(LocalData):  # noqa: N801
        def epoch(self, seed: int, epoch: int, batch_size: int, **more: Any) -> Iterator[Batch]:
            for batch in LocalData.epoch(self, seed, epoch, batch_size, **more):
                yield replace(batch, seed=0)


class KeepsALastBatchOfOne(AgentClient):
    class data(LocalData):  # noqa: N801
        def steps(self, batch_size: int, *, equal: bool = False) -> int:
            return -(-self.samples // batch_size)


class DropsShortBatches(AgentClient):
    class data(LocalData):  # noqa: N801
        def steps(self, batch_size: int, *, equal: bool = False) -> int:
            return max(1, self.samples // batch_size)


class HoldsNothingOut(AgentClient):
    class data(LocalData):  # noqa: N801
        @classmethod
        def whole(cls, dataset: Any, *, validation: float = 0.0, seed: int = 0) -> "LocalData":
            return LocalData.whole(dataset, validation=0.0, seed=seed)
