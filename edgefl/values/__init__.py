"""The values that move between the rooms and over the network, and their JSON form.

A value is a frozen dataclass that checks itself when it is made, so one that exists is valid. Read
`edgefl.values.schema` for the JSON form, `quantities` for units, and one file for each value. This room is
plain Python: it knows no numpy, no tensors, no files and no network.

    field_error        errors that know their path in the document
    units, quantities  what '250 ms' is; `Seconds`, `Bytes`, `Fraction`, ... as types
    texts              names, identifiers, digests, timestamps, seeds as types
    frozen_mapping     a mapping that cannot change
    shapes, containers, records
                       from type hints to checks and JSON
    unknown_fields     advice on a field that does not exist
    json_text, schema  strict JSON, documents with a schema tag
    labels             measured or estimated; process, package or device
    device_profile, budget, client_plan, local_result, telemetry, protocol
    settings           scalars by name that become a dataclass, chosen by its name
    formatting, describe  numbers and values as people read them
"""

from edgefl.values.budget import Budget
from edgefl.values.client_plan import ClientPlan, LocalWork, Prediction, RuleSettings, Setting
from edgefl.values.dataclass_fields import check_fields, check_order
from edgefl.values.describe import describe
from edgefl.values.device_profile import CostFit, DeviceProfile, Machine, PowerSource
from edgefl.values.field_error import FieldError
from edgefl.values.field_types import FieldType
from edgefl.values.formatting import (
    format_bytes,
    format_count,
    format_fraction,
    format_quantity,
    format_seconds,
    printable,
)
from edgefl.values.frozen_mapping import FrozenMapping
from edgefl.values.local_result import LocalResult
from edgefl.values.protocol import Assignment, Enrolled, Enrolment, Outcome, Reason, Receipt, Refusal
from edgefl.values.provenance import Provenance, Scope
from edgefl.values.quantities import (
    LARGEST_INTEGER,
    Bytes,
    BytesPerSecond,
    Celsius,
    Count,
    Fraction,
    Hertz,
    Integer,
    Joules,
    PositiveCount,
    Quantity,
    Ratio,
    Real,
    Seconds,
    SecondsPerMultiplyAdd,
    Watts,
)
from edgefl.values.schema import DocumentKind, document, dumps, from_json, kinds, loads, read, to_json
from edgefl.values.settings import chosen, settings_from, settings_of
from edgefl.values.strings import (
    Digest,
    Identifier,
    Name,
    Seed,
    Text,
    Timestamp,
    check_digest,
    digest_of,
    timestamp_of,
)
from edgefl.values.telemetry import Energy, Latency, Memory, Telemetry, Thermal, Transfer
from edgefl.values.units import Dimension

__all__ = [
    # the values
    "DeviceProfile",
    "Machine",
    "CostFit",
    "PowerSource",
    "Budget",
    "ClientPlan",
    "RuleSettings",
    "Setting",
    "LocalWork",
    "Prediction",
    "LocalResult",
    "Telemetry",
    "Latency",
    "Memory",
    "Energy",
    "Thermal",
    "Transfer",
    "Scope",
    "Provenance",
    "Enrolment",
    "Enrolled",
    "Assignment",
    "Refusal",
    "Reason",
    "Receipt",
    "Outcome",
    # their JSON form
    "to_json",
    "from_json",
    "dumps",
    "loads",
    "read",
    "document",
    "kinds",
    "DocumentKind",
    "FieldError",
    # values that are chosen by name
    "chosen",
    "settings_of",
    "settings_from",
    # to build further values from
    "check_fields",
    "check_order",
    "FrozenMapping",
    "FieldType",
    "Quantity",
    "Dimension",
    "LARGEST_INTEGER",
    "Seconds",
    "Bytes",
    "Joules",
    "Watts",
    "Celsius",
    "Hertz",
    "BytesPerSecond",
    "SecondsPerMultiplyAdd",
    "Fraction",
    "Ratio",
    "Real",
    "Integer",
    "Count",
    "PositiveCount",
    "Text",
    "Name",
    "Identifier",
    "Digest",
    "Timestamp",
    "Seed",
    "digest_of",
    "check_digest",
    "timestamp_of",
    # for a person
    "describe",
    "printable",
    "format_bytes",
    "format_seconds",
    "format_count",
    "format_fraction",
    "format_quantity",
]
