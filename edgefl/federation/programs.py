"""The programs of a federation: its ladder, which of its rungs are compiled, and what a planned task runs.

The caller says which programs exist: the coordinator knows those of its bundle and those that workers uploaded. A
device whose engine runs programs is planned on rungs (`on_rungs`); its task is then given the program that trains it
and, if there is one, the program that evaluates it (`named`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from edgefl.artifacts.bundle import INFER, TRAIN, Bundle
from edgefl.errors import SchemaError
from edgefl.federation.settings import ProgramSettings
from edgefl.local_rules import only_forward, rule_of
from edgefl.planning import Ladder, Rungs
from edgefl.strategies import Participant, PlannedTask
from edgefl.values import (
    Capabilities,
    Digest,
    EngineSoftware,
    GraphFormat,
    Program,
    ProgramRole,
    ProgramSpec,
    RuleSettings,
    runs_on,
)

__all__ = ["ProgramCatalogue", "program_engine", "runs_forward", "training_program"]


def program_engine(capabilities: Capabilities | None) -> EngineSoftware | None:
    """Return the engine of a device that runs programs; None if the engine that it uses first runs graphs."""
    first = None if capabilities is None else next(iter(capabilities.engines), None)
    return first if first is not None and first.format is GraphFormat.EXECUTORCH else None


@dataclass(frozen=True, slots=True, eq=False)
class ProgramCatalogue:
    """The ladder of a federation's model, and the programs that exist. One object serves many plans and threads."""

    ladder: Ladder
    programs: Mapping[Digest, Program] = field(default_factory=dict)
    """By the keys of their specifications."""
    for_all: bool = False
    """Whether devices whose engine runs graphs are kept on the rungs too."""
    _rungs: dict[tuple[frozenset[str], bool], Rungs] = field(default_factory=dict)
    _compilers: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compilers", frozenset(one.made_with for one in self.programs.values()))

    @classmethod
    def of(
        cls, bundle: Bundle, programs: Iterable[Program] = (), settings: ProgramSettings | None = None
    ) -> "ProgramCatalogue":
        """Return the catalogue of a bundle: its own programs, and those that were compiled for it since."""
        files, graph = bundle.manifest.files, bundle.graph
        chosen = settings or ProgramSettings()
        ladder = Ladder(graph, files[TRAIN], files[INFER], chosen.widths)
        sources = {ProgramRole.TRAIN: ladder.training_graph, ProgramRole.INFER: ladder.inference_graph}
        known = {
            program.spec.key: program
            for program in (*bundle.manifest.programs, *programs)
            if program.spec.model == graph.digest
            and program.spec.graph == sources[program.spec.role]
            and set(program.spec.widths) == set(graph.group)
        }
        return cls(ladder, known, chosen.for_all)

    def rungs_of(self, capabilities: Capabilities | None, *, whole_ladder: bool = False) -> Rungs | None:
        """Return the rungs of a device whose engine runs programs; None for any other, unless rungs are for all.

        They are those with programs that its engine's version can run; with `whole_ladder` all rungs, compiled or not.
        An engine that runs graphs needs no program, so all rungs are open to it.
        """
        engine = program_engine(capabilities)
        if engine is None:
            return self._rungs_of(frozenset(), whole_ladder=True) if self.for_all else None
        # Versions come from devices, and there may be any number of them; compilers are few.
        usable = frozenset(one for one in self._compilers if runs_on(engine.version, one))
        return self._rungs_of(usable, whole_ladder=whole_ladder)

    def _rungs_of(self, compilers: frozenset[str], *, whole_ladder: bool) -> Rungs:
        """Return the rungs with programs of these compilers."""
        key = compilers, whole_ladder
        if key not in self._rungs:
            known = sorted(self.programs.items())  # rungs do not depend on the order of programs
            specs = tuple(one.spec for _, one in known if one.made_with in compilers)
            self._rungs[key] = Rungs(self.ladder, specs, whole_ladder)
        return self._rungs[key]

    def on_rungs(self, participant: Participant, *, whole_ladder: bool = False) -> Participant:
        """Return a device with its rungs, if its engine runs programs."""
        rungs = self.rungs_of(participant.capabilities, whole_ladder=whole_ladder)
        return participant if rungs is None else replace(participant, rungs=rungs)

    def named(self, tasks: Mapping[str, PlannedTask], participants: Iterable[Participant]) -> dict[str, PlannedTask]:
        """Return tasks with the programs that devices run on their rungs, whether these exist or not."""
        rungs = {one.device_id: one.rungs for one in participants if program_engine(one.capabilities) is not None}
        found: dict[tuple[int, RuleSettings, int, int], tuple[ProgramSpec | None, ProgramSpec | None]] = {}
        made = dict(tasks)
        for device, task in tasks.items():
            own = rungs.get(device)
            if own is not None and not runs_forward(task):
                key = id(task.mask), task.rule, task.work.batch_size, id(own)
                if key not in found:
                    infer = own.inference(task.mask.widths, task.work.batch_size)
                    found[key] = training_program(task, own), infer
                made[device] = replace(task, program=found[key][0], inference_program=found[key][1])
        return made

    def can_run(self, participant: Participant, task: PlannedTask) -> bool:
        """Return whether the program that trains a task exists, in a form that the device's engine runs, or is not
        needed."""
        rungs = self.rungs_of(participant.capabilities)
        return rungs is None or task.program is None or rungs.has(task.program)

    def existing(self, tasks: Mapping[str, PlannedTask]) -> dict[str, PlannedTask]:
        """Return tasks without programs for inference that do not exist: their devices train and do not evaluate."""
        specs = {task.inference_program for task in tasks.values() if task.inference_program is not None}
        missing = {spec for spec in specs if spec.key not in self.programs}
        return {
            device: replace(task, inference_program=None) if task.inference_program in missing else task
            for device, task in tasks.items()
        }


def runs_forward(task: PlannedTask) -> bool:
    """Return whether a task only runs the model forward: that is done with a graph, by onnxruntime."""
    try:
        return only_forward(rule_of(task.rule))
    except SchemaError:  # a rule that only some other client has
        return False


def training_program(task: PlannedTask, rungs: Rungs) -> ProgramSpec | None:
    """Return the program that trains a task: the layers that its rule trains decide. None if none of them does."""
    try:
        trained = rule_of(task.rule).trains(task.mask).trained
    except SchemaError:  # a rule that only some other client has
        trained = task.mask.trained
    rung = rungs.cover(task.mask.widths, trained, task.work.batch_size)
    return None if rung is None else rung.spec
