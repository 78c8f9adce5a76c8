"""What runs inside the emulated Raspberry Pi: tasks from a folder, done by the real trainer, and facts about them.

    python -m tests.device_runtime.on_the_pi TASKS RESULTS

`test_emulated_pi.py` calls `carry_out` itself and runs this module inside, so both sides run the same code. It imports
nothing that a device does not have: edgefl, device_runtime, numpy, onnxruntime and safetensors. A process inside cannot
start another one, so nothing here does.

    TASKS      samples.npz: what the device has
               <task>/plan.json, model_graph.json, mask, weights, train.onnx, infer.onnx: what it downloads
    RESULTS    <task>/report: what it would send; <task>/facts.json: `Facts`; and the trainer's checkpoint
"""

import hashlib
import importlib.metadata
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.telemetry import machine
from device_runtime.trainer import Trainer, TrainingTask
from edgefl import noise
from edgefl.data import load
from edgefl.masks import Array
from edgefl.model_graph import ModelGraph
from edgefl.values import ClientPlan, loads
from edgefl.wire import BodyKind, decode, decode_mask

PACKAGES = ("numpy", "onnxruntime", "safetensors")
"""What a device has from elsewhere."""

_NUMBERS = 100_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What can be said about a task beside its report."""

    architecture: str
    versions: dict[str, str]
    losses: list[float]
    """The loss of every step."""
    batches: list[str]
    """A digest of every epoch's batches: samples, labels and seeds, in their order."""
    numbers: dict[str, str]
    """A digest of many random numbers of each kind."""


def carry_out(tasks: Path, results: Path) -> None:
    """Do the tasks of one folder, and leave what came of them in another."""
    data = LocalData.whole(load(tasks / "samples.npz"))
    for folder in sorted(path for path in tasks.iterdir() if path.is_dir()):
        _carry_out(read_task(folder), data, results / folder.name)


def _carry_out(task: TrainingTask, data: LocalData, result: Path) -> None:
    losses: list[float] = []
    trainer = Trainer(
        open_engine("onnx", ThreadSettings(1)),
        data,
        result,
        threads=1,
        device_id=task.plan.device_id,
        progress=lambda step, steps, loss: losses.append(loss),
        checkpoint_seconds=0.0,
    )
    finished = trainer.run(task)
    (result / "report").write_bytes(finished.body)
    facts = Facts(
        architecture=machine().architecture,
        versions={name: importlib.metadata.version(name) for name in PACKAGES},
        losses=losses,
        batches=_batches(data, task.plan),
        numbers=_numbers(task.plan.seed),
    )
    (result / "facts.json").write_text(json.dumps(asdict(facts)))


def read_task(folder: Path) -> TrainingTask:
    """Return the task of a folder."""
    graph = loads(ModelGraph, (folder / "model_graph.json").read_bytes())
    body = decode((folder / "weights").read_bytes(), kind=BodyKind.WEIGHTS)
    return TrainingTask(
        loads(ClientPlan, (folder / "plan.json").read_bytes()),
        decode_mask((folder / "mask").read_bytes(), graph),
        body.arrays,
        (folder / "train.onnx").read_bytes(),
        (folder / "infer.onnx").read_bytes(),
    )


def read_facts(result: Path) -> Facts:
    """Return the facts that were left in a folder."""
    return Facts(**json.loads((result / "facts.json").read_text()))


def _batches(data: LocalData, plan: ClientPlan) -> list[str]:
    epochs = []
    for epoch in range(plan.work.epochs):
        batches = list(data.epoch(plan.seed, epoch, plan.work.batch_size))
        seeds = json.dumps([batch.seed for batch in batches]).encode()
        epochs.append(_digest(seeds, *(array for batch in batches for array in (batch.x, batch.y))))
    return epochs


def _numbers(seed: int) -> dict[str, str]:
    """Digest every kind of random number, of a stream that no rule uses for anything else."""
    stream = noise.derive(seed, "numbers")
    return {
        "bits": _digest(noise.bits(stream, 0, _NUMBERS)),
        "unit": _digest(noise.unit(stream, 0, _NUMBERS)),
        "symmetric": _digest(noise.symmetric(stream, 0, _NUMBERS, 0.01)),
    }


def _digest(*contents: Array | bytes) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content if isinstance(content, bytes) else content.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    carry_out(Path(sys.argv[1]), Path(sys.argv[2]))
