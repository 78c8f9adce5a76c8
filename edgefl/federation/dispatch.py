"""Dispatch: planned tasks become client plans, and the bodies that they name are stored.

Devices with the same mask share its bodies, so the cost of a round grows with its distinct masks, not with its devices.
Where bodies go is the caller's choice: the coordinator has a blob store, the simulator keeps them in memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from edgefl.artifacts.bundle import GRAPH, INFER, Bundle
from edgefl.artifacts.features import FEATURES, feature_graph
from edgefl.errors import SchemaError
from edgefl.federation.programs import ProgramCatalogue
from edgefl.federation.seeds import task_seed
from edgefl.federation.settings import FederationSettings
from edgefl.federation.submodel_document import submodel_document
from edgefl.local_rules import only_forward, rule_of
from edgefl.masks import Mask, gather
from edgefl.strategies import Model, PlannedTask
from edgefl.values import ClientPlan, Digest, Program, ProgramSpec, RuleSettings, dumps
from edgefl.wire import Expected, encode_mask, encode_weights

__all__ = ["BodyRole", "BodySink", "DispatchedTask", "Dispatcher", "StoredModel"]

_GROUP_BYTES = 32 * 2**20
"""Bodies that are handed to the sink together; more would have to be in memory at the same time."""


class BodyRole(StrEnum):
    """What a body is for."""

    MASK = "mask"
    WEIGHTS = "weights"
    GRAPH = "graph"
    EXTRAS = "extras"
    TENSORS = "tensors"
    PROGRAM = "program"
    """The document that describes a program."""
    PROGRAM_FILE = "program_file"
    """The program itself, a .pte file: it is stored already, and is only reused."""


class BodySink(Protocol):
    """Stores the bodies that plans name."""

    def store(self, bodies: Sequence[tuple[BodyRole, bytes]]) -> Sequence[Digest]:
        """Store some bodies, and return their digests."""
        ...

    def reuse(self, role: BodyRole, digest: Digest) -> bool:
        """Use a body that was stored before; return whether it still exists."""
        ...


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A whole model that is stored already: a device that holds all of it downloads just that."""

    mask: Digest
    """Digest of the full mask."""
    body: Digest
    """Digest of the stored weights."""


@dataclass(frozen=True, slots=True, eq=False)
class DispatchedTask:
    """A device's task as it was planned, and as the device is told."""

    planned: PlannedTask
    plan: ClientPlan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dispatcher:
    """Dispatches the planned tasks of one federation."""

    settings: FederationSettings
    bundle: Bundle
    training_graph: Callable[[Mask], bytes]
    """Cuts the training graph for what a mask trains."""
    task_id: Callable[[int, int, str], str]
    """Names a task by round, serial and device."""
    programs: ProgramCatalogue | None = None
    """The programs that exist, if devices run any."""

    def dispatch(
        self,
        model: Model,
        planned_tasks: Mapping[str, PlannedTask],
        sink: BodySink,
        *,
        number: int,
        serial: int = 1,
        stored_model: StoredModel | None = None,
    ) -> list[DispatchedTask]:
        """Return the tasks of some devices in one round, in the order of their ids.

        `serial` tells tasks apart that one device gets in the same round.
        """
        programs = {} if self.programs is None else self.programs.programs
        bodies = _Bodies(model, self.bundle, self.training_graph, sink, stored_model, programs)
        forms = _forms(planned_tasks.values(), is_personal=number >= self.settings.rounds.count)
        for planned in planned_tasks.values():
            bodies.add(planned, forms[_form_key(planned)])
        bodies.finish()
        return [
            DispatchedTask(planned, self._plan(device, planned, forms[_form_key(planned)], bodies, number, serial))
            for device, planned in sorted(planned_tasks.items())
        ]

    def _plan(
        self,
        device: str,
        planned: PlannedTask,
        form: "_Form",
        bodies: "_Bodies",
        number: int,
        serial: int,
    ) -> ClientPlan:
        settings, files, mask, digests = self.settings, self.bundle.manifest.files, planned.mask.digest, bodies.digests
        # In buffered mode a device may get two tasks of one round, which must not draw the same random numbers.
        again = [serial] if settings.buffered else []
        return ClientPlan(
            task_id=self.task_id(number, serial, device),
            device_id=device,
            round=number,
            rounds=settings.rounds.count,
            rule=planned.rule,
            work=planned.work,
            deadline_seconds=settings.rounds.deadline,
            seed=task_seed(settings.seed, number, device, *again),
            predicted=planned.predicted,
            mask=mask,
            mask_body=digests[BodyRole.MASK, mask],
            weights=digests[BodyRole.WEIGHTS, mask],
            graph=digests[BodyRole.GRAPH, form.graph_key],
            extras=digests.get((BodyRole.EXTRAS, _extras_key(planned))),
            tensors=digests[BodyRole.TENSORS, form.tensors_key],
            model=files[GRAPH],
            inference=files[INFER],
            program=bodies.program(planned.program),
            inference_program=bodies.program(planned.inference_program),
        )


_Key = tuple[BodyRole, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """What a rule trains and sends of a submodel, and the names of the bodies that depend on it."""

    trained: Mask
    """The planned mask with the layers that the rule trains: what the graph is cut for."""
    forward: bool
    """Whether it only runs the model forward, with a graph that returns the features."""
    networks: tuple[Mask, ...]
    """Those in the mask whose features stand side by side; none if it is one network."""
    sent: Callable[[], Mapping[str, Expected]]
    """What it sends: asked for once for all masks that share the document."""
    graph_key: str
    tensors_key: str
    """Masks of equal widths share the document, whichever channels they keep."""

    @classmethod
    def of(cls, planned: PlannedTask, *, is_personal: bool) -> "_Form":
        mask, rule = planned.mask, rule_of(planned.rule)
        trained = rule.trains(mask)
        layers = sorted(trained.trained)
        widths = [f"{name}:{width}" for name, width in sorted(mask.widths.items())]

        def sent() -> Mapping[str, Expected]:
            return {} if is_personal else rule.sends(mask)  # personal models stay on the device

        forms = sent() if mask.held else {}  # a rule may send as many values of a tensor as the mask holds
        held = [f"{name}:{forms[name].shape}" if name in forms else name for name in sorted(mask.held)]
        about = (repr(rule), str(is_personal), *widths, "", *layers, "", *held)
        forward, networks = only_forward(rule), planned.networks
        features = "\n".join([FEATURES, *(one.digest for one in (mask, *networks) if networks)])
        graph_key = features if forward else "\n".join(layers)
        return cls(trained, forward, networks, sent, graph_key, "\n".join(about))

    def document(self) -> bytes:
        """Return the document that names the tensors."""
        return dumps(submodel_document(self.trained, self.sent())).encode()


class _Bodies:
    """Makes each body of a round once, and passes them on in groups; only digests are kept."""

    def __init__(
        self,
        model: Model,
        bundle: Bundle,
        training_graph: Callable[[Mask], bytes],
        sink: BodySink,
        stored: StoredModel | None,
        programs: Mapping[Digest, Program],
    ) -> None:
        self._model, self._bundle, self._training_graph = model, bundle, training_graph
        self._sink, self._stored_model = sink, stored
        self._programs = programs
        self._program_keys: dict[ProgramSpec, Digest | None] = {}
        self._waiting: dict[_Key, bytes] = {}
        self.digests: dict[_Key, Digest] = {}

    def add(self, planned: PlannedTask, form: _Form) -> None:
        """Make the bodies of a planned task, unless they exist."""
        mask, about = planned.mask, {"model": planned.mask.graph.digest, "mask": planned.mask.digest}
        self._make(BodyRole.MASK, mask.digest, lambda: encode_mask(mask))
        if planned.weights is None:
            self._reuse_stored_model(mask)
        given = self._model.weights if planned.weights is None else planned.weights
        self._make(BodyRole.WEIGHTS, mask.digest, lambda: encode_weights(gather(mask, given), about))
        self._make(BodyRole.GRAPH, form.graph_key, lambda: self._graph(form))
        self._make(BodyRole.TENSORS, form.tensors_key, form.document)
        if planned.extras:
            self._make(BodyRole.EXTRAS, _extras_key(planned), lambda: encode_weights(planned.extras, about))
        if planned.program is not None and not self._add_program(planned.program):
            raise SchemaError(
                "the program that it would train with is no longer there",
                fix="Compile it again with `edgefl compile`; the next round is planned without it.",
            )
        if planned.inference_program is not None:
            self._add_program(planned.inference_program)

    def _graph(self, form: _Form) -> bytes:
        if form.forward:
            return feature_graph(self._bundle.files[INFER], self._bundle.graph, form.trained, form.networks)
        return self._training_graph(form.trained)

    def finish(self) -> None:
        """Store what is left; `digests` is then complete."""
        self._store()

    def program(self, spec: ProgramSpec | None) -> Digest | None:
        """Return the digest of the document of a program; None if there is none, or it is no longer there."""
        key = None if spec is None else self._program_keys.get(spec)
        return None if key is None else self.digests[BodyRole.PROGRAM, key]

    def _add_program(self, spec: ProgramSpec) -> bool:
        """Store the document of a program, and let devices download its file; return whether both are there."""
        if spec not in self._program_keys:
            program = self._programs.get(spec.key)
            if program is None or not self._sink.reuse(BodyRole.PROGRAM_FILE, program.pte):
                self._program_keys[spec] = None
            else:
                self._program_keys[spec] = spec.key
                self._make(BodyRole.PROGRAM, spec.key, lambda: dumps(program).encode())
        return self._program_keys[spec] is not None

    def _make(self, role: BodyRole, name: str, make: Callable[[], bytes]) -> None:
        if (role, name) in self.digests or (role, name) in self._waiting:
            return
        self._waiting[role, name] = make()
        if sum(map(len, self._waiting.values())) > _GROUP_BYTES:
            self._store()

    def _reuse_stored_model(self, mask: Mask) -> None:
        key, stored = (BodyRole.WEIGHTS, mask.digest), self._stored_model
        if stored is None or stored.mask != mask.digest or key in self.digests:
            return
        if self._sink.reuse(BodyRole.WEIGHTS, stored.body):
            self.digests[key] = stored.body

    def _store(self) -> None:
        digests = self._sink.store([(role, body) for (role, _), body in self._waiting.items()])
        self.digests.update(zip(self._waiting, digests, strict=True))
        self._waiting.clear()


def _forms(planned_tasks: Iterable[PlannedTask], *, is_personal: bool) -> dict[tuple[int, RuleSettings], _Form]:
    """Return what tasks train and send, once for each mask and rule."""
    found: dict[tuple[int, RuleSettings], _Form] = {}
    for planned in planned_tasks:
        key = _form_key(planned)
        if key not in found:
            found[key] = _Form.of(planned, is_personal=is_personal)
    return found


def _form_key(planned: PlannedTask) -> tuple[int, RuleSettings]:
    return id(planned.mask), planned.rule  # equal masks are one object, and live as long as the tasks do


def _extras_key(planned: PlannedTask) -> str:
    """Identify the extra arrays. Tasks that share arrays share the body; the arrays live as long as the tasks do."""
    return ",".join(f"{name}:{id(array)}" for name, array in sorted(planned.extras.items()))
