"""Plans devices whose engine runs compiled programs: first as if every program existed, then with those that do.

The first plan says which programs are wanted. If one that trains is missing, the round is planned again with existing
programs only: a device takes the next rung down until a worker has compiled the one that it wants. A program that
predicts is never waited for: without it, a device trains and does not evaluate. Strategies know nothing of this.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from edgefl.federation.left_out import LONGEST_REASON, RoundPlan
from edgefl.federation.programs import ProgramCatalogue, program_engine, runs_forward, training_program
from edgefl.strategies import Participant, PlannedTask
from edgefl.values import ProgramRole, ProgramSpec
from edgefl.values.formatting import pluralise

__all__ = ["MOST_WANTED", "off_rungs", "plan_on_rungs"]

MOST_WANTED = 64
"""Programs that one plan asks for. The next plan asks for the others."""


def plan_on_rungs(
    plan: Callable[[Sequence[Participant]], RoundPlan], participants: Sequence[Participant], programs: ProgramCatalogue
) -> RoundPlan:
    """Plan for all devices together, those whose engine runs programs on their rungs, and note what is wanted."""
    ideal_rungs = [programs.on_rungs(one, whole_ladder=True) for one in participants]
    if all(one.rungs is None for one in ideal_rungs):
        return plan(participants)
    ideal = plan(ideal_rungs)
    tasks = programs.named(ideal.tasks, ideal_rungs)
    wanted = _wanted(programs, tasks)
    if all(programs.can_run(one, tasks[one.device_id]) for one in participants if one.device_id in tasks):
        return RoundPlan(programs.existing(tasks), ideal.left_out, wanted)
    rest = [programs.on_rungs(one) for one in participants if one.device_id not in ideal.left_out]
    real = plan(rest)
    waiting = {
        one.device_id: _why_waiting(programs, one, tasks[one.device_id], len(wanted))
        for one in rest
        if one.rungs is not None and one.device_id in tasks and one.device_id not in real.tasks
    }
    made = programs.existing(programs.named(real.tasks, rest))
    return RoundPlan(made, {**ideal.left_out, **real.left_out, **waiting}, wanted)


def off_rungs(participant: Participant, planned: PlannedTask) -> str | None:
    """Return why a device cannot train a submodel that it was given; None if it is on its rungs, or it needs none."""
    rungs, engine = participant.rungs, program_engine(participant.capabilities)
    if rungs is None or engine is None or runs_forward(planned):
        return None
    if rungs.cover(planned.mask.widths, planned.mask.trained, planned.work.batch_size) is not None:
        return None
    if training_program(planned, rungs) is not None:  # a rule may train less than its mask
        return None
    return (
        f"its engine {engine.name[:80]} runs compiled programs, and no program of the ladder trains the submodel that "
        "the strategy gave it"
    )


def _wanted(programs: ProgramCatalogue, tasks: Mapping[str, PlannedTask]) -> tuple[ProgramSpec, ...]:
    """Return the programs that do not exist, those of most devices first, and what trains before what predicts."""
    specs = (spec for task in tasks.values() for spec in (task.program, task.inference_program) if spec is not None)
    counts = Counter(specs)
    missing = {spec: spec.key for spec in counts if spec.key not in programs.programs}
    order = sorted(missing, key=lambda spec: (-counts[spec], spec.role is ProgramRole.INFER, missing[spec]))
    return tuple(order[:MOST_WANTED])


def _why_waiting(programs: ProgramCatalogue, participant: Participant, wants: PlannedTask, wanted: int) -> str:
    """Return why a device that could train a rung of the ladder can train none of those that exist."""
    engine, size = program_engine(participant.capabilities), wants.work.batch_size
    name = "" if engine is None else f"{engine.name[:80]} {engine.version[:40]}"
    known = [one for one in programs.programs.values() if one.spec.role is ProgramRole.TRAIN]
    if participant.rungs is not None and participant.rungs.widths(size):
        problem = f"no program that is compiled for its engine {name} fits it"
    elif participant.rungs is not None and participant.rungs.widths(1):
        problem = f"no program for its engine {name} has batches of {size} samples or more"
    elif known:
        problem = f"its engine {name} is older than {known[0].made_with[:80]}, which compiled the programs"
    else:
        problem = f"no program for its engine {name} is compiled yet"
    if not wanted:
        return problem[:LONGEST_REASON]
    are = "is" if wanted == 1 else "are"
    return f"{problem}; {pluralise(wanted, 'program')} {are} wanted: run `edgefl compile`"[:LONGEST_REASON]
