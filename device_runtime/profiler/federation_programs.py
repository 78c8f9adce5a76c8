"""Programs of a federation's own model, to measure ExecuTorch with: downloaded from its coordinator.

    GET /v1/measurement?format=executorch    cases, each with a `Program`, from the least work to the most
    GET /v1/measurement/{digest}             programs, their files, and the model graph that they name

The downloads have limits, in bytes and in seconds: what comes after them is left out. A coordinator that has too few
programs, or is from before them, is no reason to fail, since some come with the package.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.transport import HttpTransport, UnreachableError
from device_runtime.profiler.cases import CROSS_ENTROPY, MASKED_CROSS_ENTROPY, Case, CaseProgram, Sample
from device_runtime.profiler.executorch_cases import FEWEST_PROGRAMS, program_case
from device_runtime.telemetry.clock import Clock, now
from edgefl.errors import EdgeFLError
from edgefl.model_graph import ModelGraph
from edgefl.values import GraphFormat, Program, loads

if TYPE_CHECKING:
    from device_runtime.profiler.profiler import ProfileRequest

__all__ = ["FederationPrograms", "download_programs", "downloaded", "or_built_in", "with_programs"]

Measured = TypeVar("Measured")
Note = Callable[[str], None]

_FEWEST_CASES = 6
"""One more than the factors of the fit. With fewer, the built-in programs tell more about a device."""
_MOST_CASES = 24
_MOST_BYTES = 64 * 2**20
"""Bytes of all downloads together."""
_LARGEST_DOCUMENT = 2**20
_SECONDS = 60.0
_BUILT_IN = "the programs that come with the package were measured"


@dataclass(frozen=True, slots=True)
class FederationPrograms:
    """Training programs of one model. The documents are kept as JSON, so that another process can be given them."""

    model: str
    graph: bytes
    """JSON of the `ModelGraph`."""
    sample: Sample
    programs: tuple[tuple[bytes, bytes], ...]
    """JSON of each `Program`, and its file."""

    def cases(self) -> list[Case]:
        """Return what to measure."""
        graph = loads(ModelGraph, self.graph)
        return [self._case(graph, loads(Program, said, tolerant=True), pte) for said, pte in self.programs]

    def _case(self, graph: ModelGraph, program: Program, pte: bytes) -> Case:
        sample = replace(self.sample, loss=MASKED_CROSS_ENTROPY if "label_mask" in program.inputs else CROSS_ENTROPY)
        return program_case(CaseProgram(self.model, pte, sample, program), graph, program.spec)


def download_programs(
    client: CoordinatorClient, secret: str | None = None, *, most_bytes: int = _MOST_BYTES, clock: Clock = now
) -> FederationPrograms:
    """Download a federation's programs, with a join key or the device's token.

    Raise an `EdgeFLError` if there are too few to measure a device with.
    """
    download = _Download(client, secret, clock, clock() + _SECONDS, most_bytes)
    measurement = client.measurement(secret, GraphFormat.EXECUTORCH, seconds=_SECONDS)
    named = [] if measurement is None else [case.program for case in measurement.cases if case.program is not None]
    sample = client.sample(secret) if named else None
    if measurement is None or sample is None:
        raise _too_few(0)
    found = list(download.programs(dict.fromkeys(named[:_MOST_CASES])))
    _check(found)
    graph = download.fetch(loads(Program, found[0][0], tolerant=True).spec.model, download.left)
    made = FederationPrograms(
        measurement.model, graph, Sample(tuple(sample.shape), sample.dtype.value, sample.classes), tuple(found)
    )
    made.cases()  # raises if they do not fit the graph
    return made


def downloaded(download: Callable[[], FederationPrograms], note: Note) -> FederationPrograms | None:
    """Return what a download gives, or None with a note."""
    try:
        return download()
    except EdgeFLError as error:
        note(f"The coordinator's programs were not measured: {error.problem}; {_BUILT_IN} instead.")
        return None


def with_programs(request: "ProfileRequest", note: Note) -> "ProfileRequest":
    """Add the programs of the coordinator that a request names, if its engine runs programs, or note why not."""
    url = request.coordinator
    if request.engine != "executorch" or url is None or request.bundles:
        return request

    def download() -> FederationPrograms:
        with closing(HttpTransport(url, tls=request.tls)) as transport:
            return download_programs(CoordinatorClient(transport), request.key)

    return replace(request, programs=downloaded(download, note))


def or_built_in(request: "ProfileRequest", measure: "Callable[[ProfileRequest], Measured]", note: Note) -> Measured:
    """Measure; with the built-in programs if those of the coordinator cannot be measured here."""
    if request.programs is None:
        return measure(request)
    try:
        return measure(request)
    except EdgeFLError as error:
        note(f"The coordinator's programs could not be measured: {error.problem}; {_BUILT_IN} instead.")
        return measure(replace(request, programs=None))


@dataclass(slots=True)
class _Download:
    """Downloads from one coordinator, with what is left of the bytes and of the time."""

    client: CoordinatorClient
    secret: str | None
    clock: Clock
    until: float
    left: int

    def programs(self, digests: Iterable[str]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the documents of programs with their files, until a limit is reached."""
        for digest in digests:
            try:
                said = self.fetch(digest, _LARGEST_DOCUMENT)
                program = loads(Program, said, tolerant=True)
                if program.size > self.left:
                    return
                yield said, self.fetch(program.pte, program.size)
            except UnreachableError:  # too late, or a network that comes and goes: there may be enough already
                return

    def fetch(self, digest: str, most_bytes: int) -> bytes:
        """Return what has this digest."""
        seconds = self.until - self.clock()
        if seconds <= 0:
            raise UnreachableError("the downloads took too long", fix="Measure with the built-in programs.")
        most = min(most_bytes, self.left)
        body = self.client.measurement_artifact(digest, self.secret, most_bytes=most, seconds=seconds)
        self.left -= len(body)
        return body


def _check(found: list[tuple[bytes, bytes]]) -> None:
    specs = [loads(Program, said, tolerant=True).spec for said, _ in found]
    rungs = {(tuple(sorted(spec.widths.items())), tuple(spec.trained)) for spec in specs}
    if len(specs) < _FEWEST_CASES or len(rungs) < FEWEST_PROGRAMS:
        raise _too_few(len(specs))


def _too_few(count: int) -> EdgeFLError:
    return EdgeFLError(
        f"it has {count or 'none'} of at least {_FEWEST_CASES} training programs",
        fix="Measure with the built-in programs, or compile some: edgefl compile --all.",
    )
