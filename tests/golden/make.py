"""Write every golden file anew: `python -m tests.golden.make`.

Files change only when a format does; see "Changing what others read" in CONTRIBUTING.md. `test_files.py` compares what
this would write with what is there.
"""

from collections.abc import Callable

from tests.golden import (
    body_files,
    cost_fit_file,
    data_files,
    forward_files,
    mask_files,
    noise_file,
    pairing_file,
    problem_file,
    rule_files,
    score_file,
    task_files,
)
from tests.golden.encoding import FOLDER
from tests.wire.test_golden import golden_bodies

__all__ = ["FILES", "content"]

_TEXTS: dict[str, Callable[[], str]] = {
    "noise.json": noise_file.text,
    "pairing.json": pairing_file.text,
    "codecs.json": body_files.codecs,
    "bad_bodies.json": body_files.bad_bodies,
    "packed.json": body_files.packed,
    "masks.json": mask_files.masks,
    "batches.json": data_files.batches,
    "schedules.json": data_files.schedules,
    "normalisation.json": data_files.normalisation,
    "cost_fit.json": cost_fit_file.text,
    "rules_sgd.json": rule_files.sgd,
    "rules_fine_tune.json": rule_files.fine_tune,
    "rules_masked_noise.json": rule_files.masked_noise,
    "rules_feature_sums.json": forward_files.feature_sums,
    "rules_head_gradients.json": forward_files.head_gradients,
    "rules_class_prior.json": forward_files.class_prior,
    "channel_scores.json": score_file.channel_scores,
    "tasks.json": task_files.tasks,
    "forward_tasks.json": task_files.forward_tasks,
    "problems.json": problem_file.problems,
}
FILES = (*_TEXTS, "update_v1.safetensors", "mask_v1.safetensors")
"""The names of all files."""


def content(name: str) -> bytes:
    """Return what a file must hold."""
    return _TEXTS[name]().encode() if name in _TEXTS else golden_bodies()[name]


if __name__ == "__main__":
    for file in FILES:
        (FOLDER / file).write_bytes(content(file))
