"""The settings of an exact head, and which rounds of a federation its phases take."""

from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.local_rules.descent import Positive
from edgefl.values import Count, FieldError, PositiveCount, Ratio, check_fields

__all__ = ["ExactHeadSettings", "HeadFit", "PersonalHead", "Place"]


class HeadFit(StrEnum):
    """How the head is fitted."""

    NONE = "none"
    """It is trained and averaged like any other layer."""
    RIDGE = "ridge"
    LOGISTIC = "logistic"


class PersonalHead(StrEnum):
    """What devices make of the last head for themselves."""

    NONE = "none"
    """What the strategy lets them do, such as fine-tuning."""
    PRIOR = "prior"
    """They put their own shares of the classes into its bias, and train nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactHeadSettings:
    """The settings of the phase, beside those of the strategy."""

    exact_head: HeadFit = HeadFit.NONE
    head_every: Count = 0
    """Rounds of training between two phases; 0 is one phase, at the end."""
    head_rounds: PositiveCount = 5
    """Rounds of gradients after the sums, of exact_head = 'logistic'."""
    head_penalty: Ratio | None = field(default=None, metadata={"absent": "chosen by leaving devices out"})
    """The penalty of the ridge regression, as a multiple of the mean square of a feature."""
    head_clip: Positive | None = field(default=None, metadata={"absent": "not clipped"})
    """The largest norm of a sample's features."""
    head_noise: Ratio = 0.0
    """The standard deviation of the Gaussian noise on a device's sums, over the most that a sample can add."""

    personal_head: PersonalHead = PersonalHead.NONE

    def __post_init__(self) -> None:
        check_fields(self)
        if self.head_noise and self.head_clip is None:
            raise FieldError("needs features of bounded norm", fix="Give head_clip too", path=("head_noise",))

    @property
    def rounds(self) -> int:
        """The number of rounds of a phase."""
        return 1 if self.exact_head is HeadFit.RIDGE else 1 + self.head_rounds

    def place(self, number: int, rounds: int) -> "Place":
        """Return what a round is: one of the strategy's, or a step of a phase."""
        last, length = rounds - self.rounds, self.rounds
        if number >= last:
            return Place(None, number - last)
        cycle = self.head_every + length
        between = max(0, -(-(last - cycle) // cycle)) if self.head_every else 0  # of which a round of training follows
        done, within = divmod(number, cycle)
        if done < between and within >= self.head_every:
            return Place(None, within - self.head_every)
        return Place(number - length * min(done, between), None)

    def trained(self, rounds: int) -> int:
        """Return how many of the rounds are the strategy's."""
        return sum(self.place(number, rounds).own is not None for number in range(rounds))


@dataclass(frozen=True, slots=True)
class Place:
    """What a round is."""

    own: int | None
    """Its number among the strategy's rounds."""
    step: int | None
    """Its number within its phase; 0 is the round of sums."""
