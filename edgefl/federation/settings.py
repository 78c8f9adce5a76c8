"""Federation settings: model, strategy, rounds, device selection, deadlines and limits.

The coordinator stores them as JSON with the federation, an operator writes them as a TOML file
(`coordinator.federations.federation_file`), and the simulator runs on the same class. Plain values that check
themselves; no files, no network.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.planning.budgets import ROUND_SHARE
from edgefl.planning.rungs import DEFAULT_WIDTHS
from edgefl.values import (
    Bytes,
    FieldError,
    Fraction,
    Identifier,
    Joules,
    LocalWork,
    Name,
    PositiveCount,
    Ratio,
    RawDtype,
    SampleDtype,
    SampleExample,
    SampleKind,
    SampleNormalisation,
    Seconds,
    Seed,
    Setting,
    check_fields,
    document,
)

__all__ = [
    "BufferingSettings",
    "BudgetCaps",
    "EvaluationSettings",
    "FederationSettings",
    "UploadLimits",
    "FederationMode",
    "ProgramSettings",
    "RoundSettings",
    "SampleSettings",
    "SelectionSettings",
    "StrategyChoice",
]

_NO_LIMIT = {"absent": "no limit"}


class FederationMode(StrEnum):
    """How updates become a new model."""

    ROUNDS = "rounds"
    """A round waits for its devices until its deadline."""
    BUFFERED = "buffered"
    """Asynchronous: each time the buffer is full, a new model is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyChoice:
    """The strategy and its settings."""

    name: Identifier = "fedavg"
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Its parameters by name, such as {'learning_rate': 0.1}. The strategy itself checks them."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSettings:
    """When a round opens and closes."""

    count: PositiveCount = 10
    """Rounds of the federation; in buffered mode, new models."""
    deadline: Seconds = 600.0
    """Seconds from the opening of a round until it closes."""
    at_least: PositiveCount = 1
    """Fewest updates to aggregate; with fewer, the round continues with further devices and a new deadline."""
    most_attempts: PositiveCount | None = field(default=None, metadata=_NO_LIMIT)
    """Deadlines that a round may miss this way before the federation pauses for its operator."""
    keep_models: PositiveCount | None = field(default=5, metadata=_NO_LIMIT)
    """Newest models that stay on the coordinator. The first one and the one with the best accuracy in the federation's
    evaluation stay too."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionSettings:
    """Which devices take part in a round."""

    devices: PositiveCount = 10
    """Updates that a round wants; it closes when it has them."""
    over_select: Ratio = 1.0
    """Devices that are selected, as a multiple of `devices`: above 1, the round does not wait for the slowest."""
    wait_for: PositiveCount | None = field(default=None, metadata={"absent": "as many as the round needs at least"})
    """Fewest available devices for a round to open."""
    available_within: Seconds = 90.0
    """Seconds since its last request within which a device counts as available."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.over_select < 1:
            raise FieldError("is at least 1", fix="Write for example 1.3", path=("over_select",))


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferingSettings:
    """Asynchronous mode: FedBuff's buffer, with weights that fall with staleness."""

    size: PositiveCount = 10
    """Updates that make a new model."""
    at_once: PositiveCount = 20
    """Devices that work at the same time."""
    staleness_exponent: Ratio = 0.5
    """An update that is s models old is weighted by (1 + s) to the power of minus this."""
    most_staleness: PositiveCount = 100
    """Age in models beyond which an update is answered with 'late' and not aggregated."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """The data that the global model is evaluated on."""

    data: Name
    """A known data set, or the path of an .npz file: its test part is used."""
    folder: Name | None = None
    every: PositiveCount = 1
    """Rounds from one evaluation to the next. The last model is always evaluated."""
    batch_size: PositiveCount = 256

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """Limits on what a device may upload."""

    most_bytes: Bytes = 2**30
    """Size of an upload. No more is read of one than its task's plan can need, however large this is."""
    most_movement: Ratio | None = field(default=10.0, metadata=_NO_LIMIT)
    """The largest norm of an update's change, as a multiple of the norm of the submodel that the device was given."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetCaps:
    """The most that a round may take on any device. Plans keep to this, and to what each device can do."""

    memory: Bytes | None = field(default=None, metadata=_NO_LIMIT)
    """Peak memory of training; what a device has free is a limit in any case."""
    seconds: Seconds | None = field(default=None, metadata=_NO_LIMIT)
    """Predicted training time; a share of the deadline is a limit in any case. With a deadline of a day, say here how
    long a device may be expected to stay."""
    joules: Joules | None = field(default=None, metadata=_NO_LIMIT)
    """Energy, where a device's profile says how much power it takes."""
    trainable_parameters: PositiveCount | None = field(default=None, metadata=_NO_LIMIT)
    adapt: bool = True
    """Whether a device that was slower, hotter or used more memory than predicted gets a smaller submodel next. Plans
    then depend on measured times; without it, the same seed and devices give the same models."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSettings:
    """What a sample is, where the federation says more than its bundle. The fields are those of `SampleSpec`."""

    shape: tuple[PositiveCount, ...] | None = None
    dtype: SampleDtype | None = None
    kind: SampleKind | None = None
    layout: Name | None = None
    raw_dtype: RawDtype | None = None
    normalisation: SampleNormalisation | None = None
    classes: PositiveCount | None = None
    class_names: tuple[Name, ...] | None = None
    example: SampleExample | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSettings:
    """The ladder of compiled programs, for devices whose engine runs them."""

    widths: tuple[Fraction, ...] = DEFAULT_WIDTHS
    """Fractions of the model's width that programs are wanted for."""
    for_all: bool = False
    """Whether devices of every engine are kept on the rungs. Then a device's plans do not depend on its engine."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.widths or min(self.widths) <= 0:
            raise FieldError("must have widths above 0", fix="Write for example [1, 0.5, 0.25]", path=("widths",))


_DEFAULT_PROGRAMS = ProgramSettings()


@document("federation", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class FederationSettings:
    """The configuration of a federation."""

    name: Identifier
    seed: Seed = 0
    mode: FederationMode = FederationMode.ROUNDS
    strategy: StrategyChoice = field(default_factory=StrategyChoice)
    work: LocalWork = field(default_factory=LocalWork)
    rounds: RoundSettings = field(default_factory=RoundSettings)
    selection: SelectionSettings = field(default_factory=SelectionSettings)
    buffering: BufferingSettings = field(default_factory=BufferingSettings)
    evaluation: EvaluationSettings | None = None
    limits: UploadLimits = field(default_factory=UploadLimits)
    budget: BudgetCaps = field(default_factory=BudgetCaps)
    sample: SampleSettings | None = field(default=None, metadata={"absent": "as in the bundle", "added": True})
    """What a sample is, beyond what the bundle says."""
    programs: ProgramSettings = field(default=_DEFAULT_PROGRAMS, metadata={"added": True})
    """The ladder of compiled programs."""
    round_share: Fraction = ROUND_SHARE
    """Share of the deadline that a device's predicted training may take; the rest is for the network and surprises."""

    @property
    def buffered(self) -> bool:
        """Whether updates are aggregated asynchronously."""
        return self.mode is FederationMode.BUFFERED

    @property
    def wanted(self) -> int:
        """How many updates close a round."""
        return self.buffering.size if self.buffered else self.selection.devices

    @property
    def memory_seconds(self) -> float:
        """Half-life of what rounds taught about a device: ten deadlines, at least half an hour."""
        return max(1800.0, 10 * self.rounds.deadline)

    def evaluates(self, number: int) -> bool:
        """Return whether the global model is evaluated after the round with this number. The last one always is."""
        every = 1 if self.evaluation is None else self.evaluation.every
        return number + 1 == self.rounds.count or (number + 1) % every == 0

    def is_personal(self, number: int) -> bool:
        """Return whether this is the round after the last one, in which devices personalise the final model."""
        return number >= self.rounds.count

    def check_real_time(self) -> None:
        """Refuse times that no real device can keep to. In a simulation they are fine."""
        times = {
            ("rounds", "deadline"): self.rounds.deadline,
            ("selection", "available_within"): self.selection.available_within,
        }
        for path, seconds in times.items():
            if seconds < 1:
                fix = "Write for example '10 min'"
                raise FieldError(f"is at least a second, got {seconds}", fix=fix, path=path)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rounds.at_least > self.wanted:
            raise FieldError(
                f"is {self.rounds.at_least}, but a round closes with {self.wanted} updates",
                fix="Lower it, or let more devices take part",
                path=("rounds", "at_least"),
            )
