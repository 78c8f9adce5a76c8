"""Updates: a device's decoded result, together with its plan, becomes what a strategy checks and aggregates."""

from edgefl.federation.settings import FederationSettings
from edgefl.masks import Mask, Weights
from edgefl.strategies import ClientUpdate
from edgefl.values import ClientPlan
from edgefl.wire import ResultBody

__all__ = ["client_update_of", "staleness_weight"]


def client_update_of(plan: ClientPlan, mask: Mask, base: Weights, body: ResultBody, trust: float = 1.0) -> ClientUpdate:
    """Return a result as an update. `mask` is the plan's mask, `base` the model whose submodel the device was given."""
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
    )


def staleness_weight(settings: FederationSettings, staleness: int) -> float:
    """Return the factor of an update's weight whose base model is this many rounds old."""
    return float((1 + staleness) ** -settings.buffering.staleness_exponent)
