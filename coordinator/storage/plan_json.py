"""What the database itself reads in stored documents, which it otherwise treats as text: digests in plans, and the
engine in capabilities."""

import json
import re
from collections.abc import Iterable

__all__ = ["digests_in", "first_engine", "mask_given"]

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


def first_engine(capabilities: str | None) -> str | None:
    """Return the engine that a device uses first, such as 'executorch 1.4.1'; None if it did not say."""
    try:
        engine = json.loads(capabilities or "{}")["engines"][0]
        return f"{engine['name']} {engine['version']}"
    except (ValueError, LookupError, TypeError):
        return None
