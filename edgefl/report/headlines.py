"""Key figures and settings of a run, as text for a page."""

from collections.abc import Iterable
from dataclasses import dataclass

from edgefl.simulation.device_class import DeviceClass
from edgefl.simulation.run_folder import Run
from edgefl.simulation.summary import Summary, summary_of
from edgefl.values.formatting import (
    UNKNOWN,
    format_bytes,
    format_count,
    format_joules,
    format_number,
    format_part,
    format_percent,
    format_seconds,
    pluralise,
)

__all__ = ["Headline", "asked", "headlines", "name_of", "so_far", "standing"]


@dataclass(frozen=True, slots=True)
class Headline:
    """One figure in large type."""

    title: str
    value: str
    """The text may wrap at a comma."""
    note: str


def name_of(run: Run) -> str:
    """Return the name of a run: its folder."""
    return run.path.resolve().name or str(run.path)


def so_far(run: Run) -> Summary:
    """Return a run's summary; for an unfinished run, the totals of its rounds so far."""
    if run.summary is not None:
        return run.summary
    return summary_of(run.rounds, run.personal, sum(result.seconds for result in run.rounds))


def standing(run: Run) -> str:
    """Return a notice about an unfinished run, or an empty text."""
    if run.summary is not None:
        return ""
    wanted = pluralise(run.request.federation.rounds.count, "round")
    return (
        f"This run is not finished: {len(run.rounds)} of {wanted} "
        "are available. It is still running, or it was interrupted. Submodels and personal models are written at its "
        "end."
    )


def headlines(run: Run) -> tuple[Headline, ...]:
    """Return the key figures."""
    total = so_far(run)
    tasks = total.updates + total.late + total.lost + total.refused
    unknown = (
        "no device class has power figures" if run.rounds and total.joules is None else "estimated by device class"
    )
    return (
        Headline(
            "Global accuracy",
            format_percent(total.accuracy),
            f"best {format_percent(total.best_accuracy)}, loss {format_number(total.loss)}{_judged(total)}",
        ),
        Headline(
            "Personal accuracy",
            format_percent(total.personal_after),
            "evaluated at the end of the run"
            if total.personal_after is None
            else f"{format_percent(total.personal_before)} before personalisation; means over devices",
        ),
        Headline(
            "Kept", format_percent(total.kept_fraction), "of the model's parameters in personal models, on average"
        ),
        Headline("Simulated time", format_seconds(total.simulated_seconds), f"of {pluralise(total.rounds, 'round')}"),
        Headline("Energy", format_joules(total.joules), unknown),
        Headline(
            "Bytes up and down",
            f"{format_bytes(total.up_bytes)} ↑, {format_bytes(total.down_bytes)} ↓",
            f"as sent, including headers; plus {format_bytes(total.setup_bytes)} of graphs down",
        ),
        Headline(
            "Updates",
            f"{format_count(total.updates)} of {format_count(tasks)}",
            f"arrived; {format_count(total.late)} late, {format_count(total.lost)} lost, "
            f"{format_count(total.refused)} refused",
        ),
        Headline("Wall time", format_seconds(total.wall_seconds), "on the machine that simulated it"),
    )


def _judged(total: Summary) -> str:
    part = format_part(total.judged_fraction)
    return part and f"; judged{part}: the part that devices hold"


def asked(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the settings, as names and values."""
    request = run.request
    told, work = request.federation, request.federation.work
    steps = "" if work.most_steps is None else f", {pluralise(work.most_steps, 'step')} at most"
    samples = "all samples" if request.samples is None else f"{request.samples:,} samples"
    tests = "all test samples" if request.test_samples is None else f"{request.test_samples:,} test samples"
    settings = ", ".join(f"{key} = {value}" for key, value in sorted(told.strategy.settings.items()))
    return (
        ("Strategy", told.strategy.name),
        ("Settings", settings or "the strategy's defaults"),
        ("Model", request.model),
        ("Data", f"{request.data}, {samples}, {tests}"),
        ("Partition", request.partition),
        (
            "Own samples",
            f"{format_percent(request.validation)} for validation, {format_percent(request.test)} for tests",
        ),
        ("Devices", f"{request.devices:,}, of which {told.selection.devices:,} are selected per round"),
        ("Fleet", _mixture(request.classes)),
        ("Availability", request.trace or "random, by device class"),
        ("Rounds", f"{told.rounds.count:,}"),
        ("Local work", f"{pluralise(work.epochs, 'epoch')}, batches of {work.batch_size}{steps}"),
        (
            "Deadline",
            f"{format_seconds(told.rounds.deadline)} per round, {format_percent(told.round_share)} of it for training",
        ),
        ("Personal models", "made and evaluated at the end" if request.personalise else "not requested"),
        ("Seed", str(told.seed)),
    )


def _mixture(classes: Iterable[DeviceClass]) -> str:
    return ", ".join(f"{kind.name}:{kind.share:g}" for kind in classes) or UNKNOWN
