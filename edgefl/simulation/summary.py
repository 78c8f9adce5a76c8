"""A whole run in a few figures: printed by `edgefl simulate`, compared by `edgefl compare`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from edgefl.simulation.results import Fate, PersonalResult, RoundResult

__all__ = ["Summary", "summary_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of a run."""

    rounds: int
    accuracy: float | None
    """Of the final global model, on the published test samples."""
    best_accuracy: float | None
    """Of the part that was judged in its round."""
    loss: float | None
    personal_before: float | None
    """Mean over devices, of their submodels of the global model, on their own test samples."""
    personal_after: float | None
    """The same for their own models."""
    kept_fraction: float | None
    """Mean over devices of the share of parameters in their own models."""
    simulated_seconds: float
    joules: float | None
    up_bytes: int
    down_bytes: int
    """Graphs not counted."""
    setup_bytes: int
    """Graphs."""
    multiply_adds: int
    updates: int
    """Updates that counted."""
    late: int
    lost: int
    refused: int
    wall_seconds: float
    """On this machine, from the first round to the end."""
    judged_fraction: float | None = None
    """Share of the model's parameters in the part of the final model that `accuracy` and `loss` are of: what devices
    hold. None if it was not evaluated, and in runs of earlier versions, which judged all of it."""
    stopped: str | None = field(default=None, metadata={"added": True})
    """Which limit ended the run before its last round, such as '21.3 s spent, of 20 s'."""


def summary_of(
    rounds: Sequence[RoundResult], personal: PersonalResult | None, wall_seconds: float, stopped: str | None = None
) -> Summary:
    """Return the summary of a run; `stopped` says which limit ended it early."""
    tasks = [one for result in rounds for one in result.devices]
    scores = [result.score for result in rounds if result.score is not None]
    fates = [one.fate for one in tasks]
    joules = [result.joules for result in rounds if result.joules is not None]
    kept = [] if personal is None else list(personal.kept_fraction.values())
    return Summary(
        rounds=len(rounds),
        accuracy=scores[-1].accuracy if scores else None,
        best_accuracy=max((score.accuracy for score in scores), default=None),
        loss=scores[-1].loss if scores else None,
        personal_before=None if personal is None else personal.mean_before,
        personal_after=None if personal is None else personal.mean_after,
        kept_fraction=sum(kept) / len(kept) if kept else None,
        simulated_seconds=sum(result.simulated_seconds for result in rounds),
        joules=sum(joules) if joules else None,
        up_bytes=sum(one.up_bytes for one in tasks),
        down_bytes=sum(one.down_bytes for one in tasks),
        setup_bytes=sum(one.setup_bytes for one in tasks),
        multiply_adds=sum(one.multiply_adds for one in tasks),
        updates=fates.count(Fate.ARRIVED),
        late=fates.count(Fate.LATE),
        lost=fates.count(Fate.LOST),
        refused=fates.count(Fate.REFUSED),
        wall_seconds=wall_seconds,
        judged_fraction=scores[-1].judged_fraction if scores else None,
        stopped=stopped,
    )
