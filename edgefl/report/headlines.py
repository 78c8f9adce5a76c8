"""A run in a few figures, and what was asked of it, as words for a page."""

from collections.abc import Iterable
from dataclasses import dataclass

from edgefl.simulation.device_class import DeviceClass
from edgefl.simulation.run_folder import Run
from edgefl.simulation.summary import Summary, summary_of
from edgefl.values.formatting import UNKNOWN as NONE
from edgefl.values.formatting import format_bytes as size
from edgefl.values.formatting import format_count as count
from edgefl.values.formatting import format_joules as joules
from edgefl.values.formatting import format_number as ordinary
from edgefl.values.formatting import format_percent as share
from edgefl.values.formatting import format_seconds as seconds
from edgefl.values.formatting import pluralise as plural

__all__ = ["Headline", "asked", "headlines", "name_of", "so_far", "standing"]


@dataclass(frozen=True, slots=True)
class Headline:
    """One figure in large type."""

    title: str
    value: str
    """A comma is where it may go on in another line."""
    note: str


def name_of(run: Run) -> str:
    """Return what a run is called: its folder."""
    return run.path.resolve().name or str(run.path)


def so_far(run: Run) -> Summary:
    """Return a run's summary; of one that has not come to its end, what its rounds add up to."""
    if run.summary is not None:
        return run.summary
    return summary_of(run.rounds, run.personal, sum(result.seconds for result in run.rounds))


def standing(run: Run) -> str:
    """Return a sentence about a run that has not come to its end; empty of one that has."""
    if run.summary is not None:
        return ""
    wanted = plural(run.request.federation.rounds.count, "round")
    return (
        f"This run has not come to its end: {len(run.rounds)} of {wanted} "
        "are here. It is under way, or it was broken off. Parts and personal models are written in the end."
    )


def headlines(run: Run) -> tuple[Headline, ...]:
    """Return the figures that matter most."""
    total = so_far(run)
    tasks = total.updates + total.late + total.lost + total.refused
    unknown = (
        "no device class says what it draws" if run.rounds and total.joules is None else "estimated by device class"
    )
    return (
        Headline(
            "Global accuracy", share(total.accuracy), f"best {share(total.best_accuracy)}, loss {ordinary(total.loss)}"
        ),
        Headline(
            "Personal accuracy",
            share(total.personal_after),
            "devices are judged in the end"
            if total.personal_after is None
            else f"{share(total.personal_before)} before devices made the model their own; means over devices",
        ),
        Headline("Kept", share(total.kept_fraction), "of the model's parameters in devices' own models, on average"),
        Headline("Simulated time", seconds(total.simulated_seconds), f"of {plural(total.rounds, 'round')}"),
        Headline("Energy", joules(total.joules), unknown),
        Headline(
            "Bytes up and down",
            f"{size(total.up_bytes)} ↑, {size(total.down_bytes)} ↓",
            f"as sent, headers included; and {size(total.setup_bytes)} of graphs down",
        ),
        Headline(
            "Updates",
            f"{count(total.updates)} of {count(tasks)}",
            f"arrived; {count(total.late)} late, {count(total.lost)} lost, {count(total.refused)} refused",
        ),
        Headline("Wall time", seconds(total.wall_seconds), "on the machine that simulated it"),
    )


def asked(run: Run) -> tuple[tuple[str, str], ...]:
    """Return what was asked, as names and values."""
    request = run.request
    told, work = request.federation, request.federation.work
    steps = "" if work.most_steps is None else f", {plural(work.most_steps, 'step')} at the most"
    samples = "all samples" if request.samples is None else f"{request.samples:,} samples"
    tests = "all test samples" if request.test_samples is None else f"{request.test_samples:,} test samples"
    settings = ", ".join(f"{key} = {value}" for key, value in sorted(told.strategy.settings.items()))
    return (
        ("Strategy", told.strategy.name),
        ("Settings", settings or "as the strategy has them"),
        ("Model", request.model),
        ("Data", f"{request.data}, {samples}, {tests}"),
        ("Partition", request.partition),
        ("Own samples", f"{share(request.validation)} for validation, {share(request.test)} for tests"),
        ("Devices", f"{request.devices:,}, of which {told.selection.devices:,} are asked in a round"),
        ("Fleet", _mixture(request.classes)),
        ("Comings and goings", request.trace or "by chance, as the classes say"),
        ("Rounds", f"{told.rounds.count:,}"),
        ("Local work", f"{plural(work.epochs, 'epoch')}, batches of {work.batch_size}{steps}"),
        ("Deadline", f"{seconds(told.rounds.deadline)} a round, of which {share(told.round_share)} is for training"),
        ("Personal models", "made and judged in the end" if request.personalise else "not asked for"),
        ("Seed", str(told.seed)),
    )


def _mixture(classes: Iterable[DeviceClass]) -> str:
    return ", ".join(f"{kind.name}:{kind.share:g}" for kind in classes) or NONE
