"""The processes of `edgefl compile`: they refuse another model than the bundle's, and make programs that fit it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edgefl.artifacts.bundle import INFER, TRAIN, Bundle, pack_bundle
from edgefl.artifacts.program_check import check_program_file, check_programs
from edgefl.cli.compile_process import Compilers, ModelChoice
from edgefl.errors import ExportError
from edgefl.planning import Ladder
from edgefl.values import digest_of
from export.bundle import make_bundle
from export.model_source import open_source
from export.zoo import block_of


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    source = open_source("digits_mlp")
    return make_bundle(source.model, source.name, source.example, block_of=block_of)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFL_CACHE", str(tmp_path))


@contextmanager
def compilers(choice: ModelChoice) -> Iterator[Compilers]:
    one = Compilers(choice, 1)
    try:
        yield one
    finally:
        one.stop()


def test_programs_of_the_bundles_own_model_pass_the_coordinators_checks(bundle: Bundle) -> None:
    ladder = Ladder(bundle.graph, bundle.manifest.files[TRAIN], bundle.manifest.files[INFER])
    widths, (whole, *_, last) = ladder.widths[0.5], ladder.cuts.values()
    specs = [ladder.training_spec(widths, cut, 8) for cut in (whole, last)] + [ladder.inference_spec(widths, 8)]
    with compilers(ModelChoice(pack_bundle(bundle))) as processes:
        processes.check()
        for spec in specs:
            program, file = processes.compile(spec).result()
            assert (program.spec, program.pte, program.size) == (spec, digest_of(file), len(file))
            check_program_file(file)
            check_programs([program], bundle)


def test_another_model_is_refused_before_anything_is_compiled(bundle: Bundle) -> None:
    choice = ModelChoice(pack_bundle(bundle), model="digits_cnn")
    with compilers(choice) as processes, pytest.raises(ExportError, match="is not the model of the bundle"):
        processes.check()


def test_a_process_that_dies_is_replaced_for_the_next_program(bundle: Bundle) -> None:
    ladder = Ladder(bundle.graph, bundle.manifest.files[TRAIN], bundle.manifest.files[INFER])
    spec = ladder.inference_spec(ladder.widths[0.25], 4)
    with compilers(ModelChoice(pack_bundle(bundle))) as processes:
        first = processes.compile(spec)
        for process in list(processes._pool._processes.values()):
            process.kill()
        with pytest.raises(Exception, match="terminated abruptly"):
            first.result()
        assert processes.compile(spec).result()[0].spec == spec
