"""masks.json: masks of the tiny model, their digests, bodies and shapes."""

from typing import Any

from edgefl.masks import Mask
from edgefl.values import dumps
from edgefl.wire import encode_mask
from tests.golden.encoding import cases_text, flags_text, to_base64
from tests.golden.tiny_model import MASKS, tiny_model

__all__ = ["masks"]


def masks() -> str:
    """Return the text of masks.json."""
    graph = tiny_model()
    return cases_text(
        (_case(name, mask) for name, mask in MASKS.items()), model=dumps(graph), model_digest=graph.digest
    )


def _case(name: str, mask: Mask) -> dict[str, Any]:
    return {
        "name": name,
        "trained": sorted(mask.trained),
        "kept": {group: kept.tolist() for group, kept in mask.kept.items()},
        "held": {tensor: flags_text(flags) for tensor, flags in mask.held.items()},
        "digest": mask.digest,
        "shapes": [[tensor.name, list(mask.shapes[tensor.name])] for tensor in mask.graph.tensors],
        "trained_tensors": list(mask.trained_tensors),
        "body": to_base64(encode_mask(mask)),
    }
