"""The digests that a stored plan names. The database otherwise treats plans as text."""

import json
import re
from collections.abc import Iterable

__all__ = ["digests_in", "mask_given"]

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def digests_in(plans: Iterable[str]) -> set[str]:
    """Return every digest in these texts."""
    found: set[str] = set()
    for plan in plans:
        found.update(_DIGEST.findall(plan))
    return found


def mask_given(plan: str) -> str | None:
    """Return the digest of the mask body that a plan gives; None if it gives the whole model."""
    try:
        document = json.loads(plan)
    except ValueError:
        return None
    mask = document.get("mask_body") if isinstance(document, dict) else None
    return mask if isinstance(mask, str) else None
