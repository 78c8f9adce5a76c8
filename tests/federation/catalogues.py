"""Catalogues of programs for tests: the documents of some rungs, as a bundle or a worker would bring them."""

from collections.abc import Iterable, Iterator, Sequence

from edgefl.artifacts.bundle import INFER, TRAIN
from edgefl.federation.programs import ProgramCatalogue
from edgefl.model_graph import ModelGraph
from edgefl.planning import DEFAULT_WIDTHS, Ladder
from edgefl.values import EngineSoftware, GraphFormat, Program, ProgramSpec, digest_of
from tests.device_runtime.federation import bundle

FILES = bundle().manifest.files
EXECUTORCH = EngineSoftware(name="executorch", version="1.4.1", format=GraphFormat.EXECUTORCH)
BATCH = 32


def ladder_of(graph: ModelGraph, fractions: tuple[float, ...] = DEFAULT_WIDTHS) -> Ladder:
    return Ladder(graph, FILES[TRAIN], FILES[INFER], fractions)


def program(spec: ProgramSpec, made_with: str = "executorch 1.4.1") -> Program:
    return Program(
        spec=spec,
        inputs=("x", "y", "sample_weights"),
        outputs=("loss",),
        pte=digest_of(spec.key.encode()),
        size=1000,
        peak_bytes=5000,
        made_with=made_with,
    )


def training(
    ladder: Ladder, fractions: Iterable[float], cuts: Sequence[str] | None = None, batch: int = BATCH
) -> Iterator[ProgramSpec]:
    """Yield training programs of some widths, for some cuts or all of them."""
    for fraction in fractions:
        for name, layers in ladder.cuts.items():
            if cuts is None or name in cuts:
                yield ladder.training_spec(ladder.widths[fraction], layers, batch)


def inference(ladder: Ladder, fractions: Iterable[float], batch: int = BATCH) -> Iterator[ProgramSpec]:
    for fraction in fractions:
        yield ladder.inference_spec(ladder.widths[fraction], batch)


def catalogue(ladder: Ladder, specs: Iterable[ProgramSpec], made_with: str = "executorch 1.4.1") -> ProgramCatalogue:
    return ProgramCatalogue(ladder, {spec.key: program(spec, made_with) for spec in specs})
