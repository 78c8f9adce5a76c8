"""Training: the update of every rule that all clients have, checked in full against the right one.

Rules and settings that were added to the contract are asked of the clients that name them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from edgefl.conformance.messages import Exchange, Route, ScriptedAnswer
from edgefl.conformance.situation import Row, TaskSituation
from edgefl.conformance.tasks import OfferedTask, conformance_bundle, offer, sgd
from edgefl.conformance.update_check import update_problems
from edgefl.local_rules import rule_needs
from edgefl.masks import Mask, freeze, full_mask
from edgefl.model_graph import ModelGraph
from edgefl.noise import derive, symmetric
from edgefl.values import LocalWork, RuleSettings

__all__ = ["ROWS"]

_BATCHES = "rules.md#batches"
_DESCENT = "rules.md#gradient-descent"
_TENSORS = "graphs.md#the-tensors-of-a-task"
_NOISE = "rules.md#masked_noise"
_FINE_TUNE = "rules.md#fine_tune"
_RATES = "rules.md#learning-rates"
_SENSITIVITY = "rules.md#sensitivities"
_SUMS = "rules.md#feature_sums"
_GRADIENTS = "rules.md#head_gradients"
_RESULT = "protocol.md#put-v1taskstask_idresult-send-the-result"
_CLIP = 0.3
"""The largest norm of a sample's features: a quarter of the samples have a smaller one."""
MakeTask = Callable[[str, str], OfferedTask]


@dataclass(eq=False)
class _Training(TaskSituation):
    """A task whose update is checked in full."""

    make: MakeTask = lambda name, device: offer(name, device)

    def make_task(self) -> OfferedTask:
        return self.make(self.row.name, self.stage.device_id)

    def problems(self) -> list[str]:
        sent = self.results()
        if not sent:
            said = [(one.content or b"")[:120].decode(errors="replace") for one in self.refusals()]
            return [f"refused it: {said[0]}" if said else "sent no result"]
        down_bytes = sum(one.sent_bytes for one in self.of(Route.ARTIFACT))
        seconds = sent[0].arrived - self.offered_at
        return update_problems(sent[0].content, self.offered, seconds=seconds, down_bytes=down_bytes)

    def did(self) -> str:
        return f"sent the right update of {len(self.results()[0].content or b''):,} bytes"


@dataclass(eq=False)
class _Added(_Training):
    """A task by a rule or a setting that was added to the contract: only a client that names it is asked."""

    def on_poll(self, exchange: Exchange) -> ScriptedAnswer | None:
        return self.send_plan() if self.is_asked() else None

    def is_asked(self) -> bool:
        return self.stage.rules >= set(rule_needs(self.offered.plan.rule))

    def problems(self) -> list[str]:
        return _Training.problems(self) if self.is_asked() else []


def _row(name: str, asks: str, make: MakeTask, section: str = _RESULT) -> Row:
    return Row(f"training/{name}", asks, section, partial(_Training, make=make))


def _added_row(name: str, asks: str, make: MakeTask, section: str) -> Row:
    return Row(f"training/{name}", asks, section, partial(_Added, make=make))


def _graph() -> ModelGraph:
    return conformance_bundle().graph


def _narrow(name: str, device: str) -> OfferedTask:
    mask = Mask.of(_graph(), kept={"0": [0, 2, 5], "5": [1, 2, 3, 7, 8, 12, 15]})
    return offer(name, device, mask=mask)


def _frozen(name: str, device: str) -> OfferedTask:
    return offer(name, device, mask=freeze(full_mask(_graph()), ["0", "1"]))


def _held(name: str, device: str) -> OfferedTask:
    """Return a task whose mask holds two of three weights of a layer."""
    flags = np.arange(16 * 96).reshape(16, 96) % 3 > 0
    return offer(name, device, mask=Mask.of(_graph(), held={"5.weight": flags}), rule=sgd(codec="sparse", momentum=0.9))


def _options(name: str, device: str) -> OfferedTask:
    rule = sgd(
        learning_rate=0.2,
        momentum=0.9,
        nesterov=True,
        weight_decay=0.01,
        proximal=0.05,
        schedule="cosine",
        schedule_by="step",
        final_rate=0.01,
    )
    return offer(name, device, rule=rule, work=LocalWork(epochs=3, batch_size=20))


def _noise(masks: str, name: str, device: str) -> OfferedTask:
    rule = RuleSettings(name="masked_noise", settings={"learning_rate": 0.1, "masks": masks})
    return offer(name, device, rule=rule, work=LocalWork(epochs=2, batch_size=20))


def _sensitivity(rule: str, name: str, device: str) -> OfferedTask:
    """Return a task of some channels and clipped gradients, whose update reports sensitivities."""
    settings = {"learning_rate": 0.1, "momentum": 0.9, "clip_norm": 0.2, "sensitivity": True}
    mask = Mask.of(_graph(), kept={"0": [0, 2, 5], "5": [1, 2, 3, 7, 8, 12, 15]})
    work = LocalWork(epochs=2, batch_size=20)
    return offer(name, device, mask=mask, rule=RuleSettings(name=rule, settings=settings), work=work)


def _sums(rule: str, name: str, device: str) -> OfferedTask:
    """Return a task of sums of clipped features, by some channels; the last batch is of one sample."""
    mask = Mask.of(_graph(), trained=[], kept={"0": [0, 2, 5], "5": [1, 2, 3, 7, 8, 12, 15]})
    head = {name: mask.shapes[name] for name in ("8.weight", "8.bias")}
    brought = {
        name: symmetric(derive(2, name), 0, math.prod(shape), 2.0).reshape(shape) for name, shape in head.items()
    }
    return offer(
        name,
        device,
        mask=mask,
        rule=RuleSettings(name=rule, settings={"clip": _CLIP}),
        work=LocalWork(epochs=1, batch_size=20),
        extras=brought if rule == "head_gradients" else None,
    )


def _fine_tune(head: str, name: str, device: str) -> OfferedTask:
    rule = RuleSettings(name="fine_tune", settings={"learning_rate": 0.05, "head": head})
    return offer(name, device, rule=rule, round=10, rounds=10)


def _work(name: str, device: str, *, epochs: int = 1, batch: int = 20, most: int | None = None) -> OfferedTask:
    return offer(name, device, work=LocalWork(epochs=epochs, batch_size=batch, most_steps=most))


ROWS = (
    _row("sgd", "train the whole model, a short last batch included", offer),
    _row("narrow", "train a submodel of some channels", _narrow, _TENSORS),
    _row("frozen", "train and send the layers that are not frozen", _frozen, _TENSORS),
    _row("held", "move and send held weights alone, as the codec sparse", _held, _TENSORS),
    _row("momentum", "train with momentum", partial(offer, rule=sgd(momentum=0.9)), _DESCENT),
    _row("clipping", "clip the norm of all gradients together", partial(offer, rule=sgd(clip_norm=0.2)), _DESCENT),
    _row("options", "Nesterov, decay, the proximal term, a cosine by steps", _options, _RATES),
    _row("epochs", "draw another order of batches in every epoch", partial(_work, epochs=3), _BATCHES),
    _row(
        "most-steps",
        "stop after most_steps, in the middle of a later epoch",
        partial(_work, epochs=4, most=7),
        _BATCHES,
    ),
    _row("last-of-one", "drop a last batch of one sample", partial(_work, epochs=2, batch=16), _BATCHES),
    _row("large-batch", "take all samples as one batch if they are fewer", partial(_work, batch=200), _BATCHES),
    _row("large-seed", "take all 64 bits of the seed", partial(offer, seed=2**64 - 3), _BATCHES),
    _row("masked-noise", "learn and send the bits of binary masked noise", partial(_noise, "binary"), _NOISE),
    _row("signed-noise", "learn and send the bits of signed masked noise", partial(_noise, "signed"), _NOISE),
    _added_row(
        "sensitivity", "report sensitivities, if it has that setting", partial(_sensitivity, "sgd"), _SENSITIVITY
    ),
    _added_row(
        "noise-sensitivity",
        "report those of masked noise, if it has that setting",
        partial(_sensitivity, "masked_noise"),
        _SENSITIVITY,
    ),
    _added_row("feature-sums", "send sums of features, if it has that rule", partial(_sums, "feature_sums"), _SUMS),
    _added_row(
        "head-gradients",
        "send the gradient by the head that is brought, if it has that rule",
        partial(_sums, "head_gradients"),
        _GRADIENTS,
    ),
    _row("fine-tune", "train a personal model, and send its report alone", partial(_fine_tune, "train"), _FINE_TUNE),
    _row("head-only", "train the head alone, and send the report alone", partial(_fine_tune, "head_only"), _FINE_TUNE),
)
