"""Programs that nobody can run: files with the right first bytes, and documents that fit the bundle of the tests."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from edgefl.artifacts.bundle import INFER, TRAIN, Bundle, with_programs
from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from edgefl.model_graph import TensorRole
from edgefl.planning import DEFAULT_WIDTHS, Ladder
from edgefl.values import Capabilities, EngineSoftware, GraphFormat, Program, ProgramRole, ProgramSpec, digest_of
from tests.device_runtime.federation import bundle
from tests.values.samples import CAPABILITIES

EXECUTORCH: Capabilities = replace(
    CAPABILITIES,
    engines=(EngineSoftware(name="executorch", version="1.4.1", format=GraphFormat.EXECUTORCH),),
    rules=tuple(dict.fromkeys((*CAPABILITIES.rules, "sgd", "fine_tune"))),
    batch_sizes=None,
)
"""What a device says whose engine runs programs."""


def ladder(of: Bundle | None = None, fractions: tuple[float, ...] = DEFAULT_WIDTHS) -> Ladder:
    """The ladder of a bundle."""
    one = of or bundle()
    return Ladder(one.graph, one.manifest.files[TRAIN], one.manifest.files[INFER], fractions)


def file_of(spec: ProgramSpec, by: str = "") -> bytes:
    """The file of a program; each worker may make other bytes."""
    return b"\x1c\0\0\0ET12" + f"{spec.key} by {by}".encode()


def program_of(spec: ProgramSpec, by: str = "") -> Program:
    """The document of a program, as a compiler writes it."""
    graph, file = bundle().graph, file_of(spec, by)
    tensors = tuple(graph.tensor)
    trained = [name for layer in spec.trained for name in graph.layer[layer].tensors]
    statistics = {name for name in tensors if graph.tensor[name].role is TensorRole.STATISTIC}
    outputs = [f"{NEW_STATISTIC if name in statistics else GRADIENT}{name}" for name in trained]
    training = spec.role is ProgramRole.TRAIN
    return Program(
        spec=spec,
        inputs=("x", "y", "sample_weights", *tensors) if training else ("x", *tensors),
        outputs=("loss", "correct", *outputs) if training else ("logits",),
        pte=digest_of(file),
        size=len(file),
        peak_bytes=4096,
        made_with="executorch 1.4.1",
    )


def specs_of(fractions: Iterable[float], *, batch: int, cuts: Iterable[str] | None = None) -> list[ProgramSpec]:
    """Specifications of training programs for some rungs of the ladder: all cuts, unless some are named."""
    own = ladder()
    chosen = list(own.cuts) if cuts is None else list(cuts)
    return [own.training_spec(own.widths[fraction], own.cuts[cut], batch) for fraction in fractions for cut in chosen]


def bundle_with(specs: Iterable[ProgramSpec]) -> Bundle:
    """The bundle of the tests with programs."""
    made: Mapping[Program, bytes] = {program_of(spec): file_of(spec) for spec in specs}
    return with_programs(bundle(), made)
