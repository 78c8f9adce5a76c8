"""Removes secrets from texts. Logs and the audit log pass everything through here that a caller could have written."""

import re

__all__ = ["TOKEN", "without_secrets"]

TOKEN = re.compile(r"edgefl-(?:key|device|admin|viewer)-[A-Za-z0-9_-]+")
"""Every secret that EdgeFL makes (`coordinator.federations.tokens`)."""
_BEARER = re.compile(r"(?i)\b(bearer|authorization)(['\":=\s]+)(?:bearer\s+)?[^\s'\",}]+")


def without_secrets(text: str) -> str:
    """Return a text without anything that looks like a token."""
    return _BEARER.sub(r"\1\2(secret)", TOKEN.sub("(secret)", text))
