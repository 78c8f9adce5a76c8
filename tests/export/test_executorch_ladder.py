"""A ladder of programs, compiled by real processes: the cache, the time limit, and what fails."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from edgefl.artifacts.bundle import INFER, TRAIN
from edgefl.errors import ExportError
from edgefl.planning.rungs import Ladder
from edgefl.values import Program, ProgramRole, ProgramSpec, digest_of
from export.bundle import make_bundle
from export.executorch.compilation import CompiledPrograms, ModelArguments, Progress, compile_programs
from export.executorch.ladder import ladder_specs
from export.executorch.program_cache import ProgramCache
from export.losses import Loss

BATCH = 2
MODEL = ModelArguments(target="tests.export.test_executorch_ladder:network", sample="6")


def network() -> nn.Module:
    """A model that compiles in a second."""
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


BUNDLE = make_bundle(network(), "network", torch.zeros(2, 6))
LADDER = Ladder(BUNDLE.graph, BUNDLE.manifest.files[TRAIN], BUNDLE.manifest.files[INFER], fractions=(1.0, 0.5))


def compiled(
    specs: list[ProgramSpec], folder: Path, seconds: float | None = None, seen: list[Progress] | None = None
) -> CompiledPrograms:
    told = [] if seen is None else seen
    cache = ProgramCache(folder)
    return compile_programs(
        MODEL, BUNDLE.graph, Loss.CROSS_ENTROPY, specs, jobs=2, seconds=seconds, cache=cache, progress=told.append
    )


def test_all_layers_of_every_width_come_first_then_predictions_then_other_cuts() -> None:
    specs = ladder_specs(LADDER, [8, 4])
    assert len(specs) == 2 * 2 * (2 + 1)
    assert [spec.role for spec in specs[:4]] == [ProgramRole.TRAIN] * 2 + [ProgramRole.INFER] * 2
    assert [len(spec.trained) for spec in specs[:6]] == [2, 2, 0, 0, 1, 1]
    assert [spec.batch_size for spec in specs] == [8] * 6 + [4] * 6
    assert [len(spec.trained) for spec in ladder_specs(LADDER, [8], ["2"])] == [1, 1, 0, 0]
    with pytest.raises(ExportError, match="no cut of the model begins at 'stem'"):
        ladder_specs(LADDER, [8], ["stem"])


def test_a_ladder_is_compiled_once_and_a_program_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    specs, seen = ladder_specs(LADDER, [BATCH], ["2"])[:3], list[Progress]()
    bad = replace(specs[0], model=BUNDLE.manifest.files[TRAIN])
    first = compiled([bad, *specs], tmp_path, seen=seen)
    assert [program.spec for program in first.programs] == specs
    assert set(first.seconds) == {spec.key for spec in specs}
    assert "but this is" in first.failed[bad.key]
    assert first.left == ()
    assert [state.done for state in seen] == [0, 1, 2, 3, 4]
    assert seen[-1].seconds_left == 0
    again = compiled(specs, tmp_path)
    assert again.seconds == {}  # no process was started
    assert again.programs == first.programs


def test_what_a_time_limit_leaves_out_is_said(tmp_path: Path) -> None:
    spec = ladder_specs(LADDER, [BATCH])[0]
    found = compiled([spec], tmp_path, seconds=0.0)
    assert (found.programs, found.seconds, found.failed, found.left) == ({}, {}, {}, (spec,))


def test_a_damaged_file_in_the_cache_counts_as_missing(tmp_path: Path) -> None:
    spec, pte = ladder_specs(LADDER, [BATCH])[0], b"a program"
    program = Program(
        spec=spec, inputs=("x",), outputs=("loss",), pte=digest_of(pte), size=9, peak_bytes=1, made_with="a test"
    )
    cache = ProgramCache(tmp_path)
    cache.put(program, pte)
    assert cache.get(spec) == (program, pte)
    assert cache.get(replace(spec, batch_size=3)) is None
    (file,) = tmp_path.glob("*.pte")
    file.write_bytes(b"a_program")
    assert cache.get(spec) is None
    cache.put(program, pte)
    (document,) = tmp_path.glob("*.json")
    document.write_text("{}")
    assert cache.get(spec) is None
