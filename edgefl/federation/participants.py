"""Participants: a device's profile, limits and history become what a strategy is told about it."""

from edgefl.federation.settings import FederationSettings
from edgefl.masks import Mask
from edgefl.planning import Correction, bounded, budget_of
from edgefl.strategies import Participant
from edgefl.values import Budget, Capabilities, DeviceProfile

__all__ = ["participant_of"]

_NO_LIMITS = Budget()


def participant_of(
    settings: FederationSettings,
    device_id: str,
    profile: DeviceProfile,
    *,
    correction: Correction | None = None,
    limits: Budget = _NO_LIMITS,
    samples: int | None = None,
    mask: Mask | None = None,
    capabilities: Capabilities | None = None,
) -> Participant:
    """Return a device as a strategy sees it, with its budget for one round.

    `correction` is what earlier rounds taught about its predictions, and `limits` are the device's own. `samples` is
    what it said last, `mask` comes from its last result; `capabilities` are what its software said that it can run.
    """
    caps, profile = settings.budget, bounded(profile)
    budget = budget_of(
        profile,
        deadline_seconds=settings.rounds.deadline,
        round_share=settings.round_share,
        most_seconds=caps.seconds,
        memory_bytes=caps.memory,
        joules=caps.joules,
        trainable_parameters=caps.trainable_parameters,
        correction=correction,
    )
    return Participant(device_id, profile, budget.tightened_by(limits), samples, mask, capabilities)
