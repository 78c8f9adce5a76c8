"""channel_scores.json: the magnitudes of channels by which Hermes prunes."""

from typing import Any

from edgefl.local_rules.channel_pruning import magnitudes
from edgefl.local_rules.submodel_channels import squared_norms
from edgefl.masks import Mask
from edgefl.values import dumps
from edgefl.wire import encode_mask
from tests.golden.encoding import cases_text, json_of, to_base64
from tests.golden.tiny_model import MASKS, tiny_model, tiny_weights

__all__ = ["channel_scores"]


def channel_scores() -> str:
    """Return the text of channel_scores.json."""
    names = ("whole", "narrow", "one channel each", "narrow, held")
    return cases_text((_case(name, MASKS[name]) for name in names), model=dumps(tiny_model()))


def _case(name: str, mask: Mask) -> dict[str, Any]:
    weights = tiny_weights(mask)
    norms, scores = squared_norms(mask, weights), magnitudes(mask, weights)
    return {
        "name": name,
        "mask_body": to_base64(encode_mask(mask)),
        "weights": {tensor: json_of(array) for tensor, array in weights.items()},
        "groups": {
            group: {"squares": total.tolist(), "entries": entries, "scores": scores[group].tolist()}
            for group, (total, entries) in norms.items()
        },
    }
