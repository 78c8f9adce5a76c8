"""What a sample of a federation is: what its settings say, then its bundle, then its evaluation data.

The coordinator sends it to members (`GET /v1/sample`), which check their own data against it before they join.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from edgefl.artifacts.bundle import Bundle
from edgefl.data import Dataset, described_by
from edgefl.federation.settings import FederationSettings, SampleSettings
from edgefl.values import FieldError, SampleSpec
from edgefl.values.dataclass_fields import fields_of

__all__ = ["sample_of"]

_OF_THE_MODEL = ("shape", "dtype", "classes")


def sample_of(
    settings: FederationSettings, bundle: Bundle, evaluation_data: Callable[[], Dataset | None] = lambda: None
) -> SampleSpec:
    """Return what a sample is. Raise a `FieldError` if the settings contradict the model or themselves.

    `evaluation_data` is loaded only if neither settings nor bundle say what a sample is before normalisation.
    """
    known, more = bundle.sample, settings.sample or SampleSettings()
    if known.raw_dtype is None and more.raw_dtype is None and more.normalisation is None:
        data = evaluation_data()
        known = known if data is None else described_by(data, known)
    said: dict[str, Any] = {name: getattr(more, name) for name in fields_of(SampleSettings)}
    said = {name: value for name, value in said.items() if value is not None and value != getattr(known, name)}
    for name in _OF_THE_MODEL:
        if name in said:
            raise FieldError(
                f"is {_text(said[name])}, but the model takes {_text(getattr(known, name))}",
                fix="Correct it, or leave it out: the bundle says it",
                path=("sample", name),
            )
    if {"raw_dtype", "normalisation"} & said.keys() and "example" not in said:
        known = replace(known, example=None)  # it was made with another normalisation
    try:
        return replace(known, **said)
    except FieldError as error:
        raise error.under("sample") from None


def _text(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)
