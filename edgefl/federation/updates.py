"""Updates: a device's decoded result, together with its plan, becomes what a strategy checks and aggregates.

After a checked update, the strategy may also decide on the device's next mask.
"""

from edgefl.federation.settings import FederationSettings
from edgefl.masks import Mask, Weights
from edgefl.planning import Rungs
from edgefl.strategies import ClientUpdate, Strategy
from edgefl.values import ClientPlan
from edgefl.wire import ResultBody

__all__ = ["client_update_of", "mask_after", "staleness_weight"]


def client_update_of(
    plan: ClientPlan,
    mask: Mask,
    base: Weights,
    body: ResultBody,
    trust: float = 1.0,
    *,
    rungs: Rungs | None = None,
) -> ClientUpdate:
    """Return a result as an update. `mask` is the plan's mask, `base` the model whose submodel the device was given.

    `rungs` are those of a device whose engine runs programs: a mask that a strategy decides on is then one of them.
    """
    return ClientUpdate(
        device_id=plan.device_id,
        mask=mask,
        rule=plan.rule,
        seed=plan.seed,
        base=base,
        result=body.result,
        tensors=body.tensors,
        next_mask=body.next_mask,
        trust=trust,
        rungs=rungs,
    )


def mask_after(strategy: Strategy, settings: FederationSettings, update: ClientUpdate) -> Mask | None:
    """Return a device's mask after a checked update that counts; None if it keeps that of the plan.

    A strategy without `next_mask` leaves it to the devices. After the last round nothing is trained any more: what a
    strategy would take away then could not be made up for.
    """
    decide, last = getattr(strategy, "next_mask", None), getattr(strategy, "last_trained", None)
    end = settings.rounds.count - 1 if last is None else last(settings.rounds.count)
    if decide is None or update.result.round >= end:
        return update.next_mask
    found: Mask | None = decide(update)
    return found


def staleness_weight(settings: FederationSettings, staleness: int) -> float:
    """Return the factor of an update's weight whose base model is this many rounds old."""
    return float((1 + staleness) ** -settings.buffering.staleness_exponent)
