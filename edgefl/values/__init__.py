"""Data types exchanged between packages and over the network, and their JSON form.

A value is a frozen dataclass that checks itself on construction, so every existing value is valid. This package is
plain Python: it uses no numpy, no tensors, no files and no network.

field_error.py       errors with the path of the offending field
units.py             units, and the conversion of texts such as '250 ms'
quantities.py        quantity types: `Seconds`, `Bytes`, `Fraction`, ...
strings.py           string types: names, identifiers, digests, timestamps, seeds
frozen_mapping.py    immutable mapping
field_types.py       how one kind of field is read, checked and written
containers.py        field types that contain others: optional values, lists, mappings
dataclass_fields.py  dataclasses as field types: from type hints to checks and JSON
unknown_fields.py    advice for unknown fields: near misses, and units that belong elsewhere
tolerant_reading.py  drops unknown fields, for readers that must accept what later versions add
strict_json.py       strict JSON parsing
schema.py            documents with a schema tag, and their JSON form
settings.py          named scalars that configure a dataclass chosen by name
provenance.py        measured or estimated; scope of a measurement
device_profile.py    what a device can do
device_profiles.py   the same with each of its engines, in one file
budget.py            what a device may spend on one round
client_plan.py       one device's task in one round
submodel.py          the tensors of a task's submodel, and what its update must hold
capabilities.py      what a device's software can run
program.py           a compiled ExecuTorch program, and what to compile
sample_spec.py       what one sample of a federation is
telemetry.py         what a round cost the device
local_result.py      a device's report of its task
measurement.py       steps to time, for a client that profiles itself
protocol.py          messages between a device and the coordinator
formatting.py        numbers as people read them
describe.py          human-readable description of a value
"""

from edgefl.values.budget import Budget
from edgefl.values.capabilities import Capabilities, ClientSoftware, EngineSoftware, GraphFormat
from edgefl.values.client_plan import ClientPlan, LocalWork, Prediction, RuleSettings, Setting
from edgefl.values.dataclass_fields import check_fields, check_order
from edgefl.values.describe import describe
from edgefl.values.device_profile import CostFit, DeviceProfile, Machine, PowerSource
from edgefl.values.device_profiles import DeviceProfiles, dump_profiles, engine_package, read_profiles
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
from edgefl.values.measurement import Measurement, MeasurementCase
from edgefl.values.program import SAMPLE_WEIGHTS, Program, ProgramRole, ProgramSpec, runs_on
from edgefl.values.protocol import Assignment, Enrolled, Enrolment, Outcome, Pins, Reason, Receipt, Refusal, SampleCount
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
from edgefl.values.sample_spec import (
    RawDtype,
    SampleDtype,
    SampleExample,
    SampleKind,
    SampleNormalisation,
    SampleSpec,
)
from edgefl.values.schema import DocumentKind, document, dumps, from_json, kinds, loads, read, to_json
from edgefl.values.settings import added_settings, chosen, settings_from, settings_of
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
from edgefl.values.submodel import SentPayload, Submodel, SubmodelTensor
from edgefl.values.telemetry import Energy, Latency, Memory, Telemetry, Thermal, ThermalStatus, Transfer
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
    "Submodel",
    "SubmodelTensor",
    "SentPayload",
    "LocalResult",
    "Telemetry",
    "Latency",
    "Measurement",
    "MeasurementCase",
    "Memory",
    "Energy",
    "Thermal",
    "ThermalStatus",
    "Transfer",
    "Scope",
    "Provenance",
    "SampleSpec",
    "SampleCount",
    "SampleDtype",
    "SampleExample",
    "SampleKind",
    "SampleNormalisation",
    "RawDtype",
    "Capabilities",
    "ClientSoftware",
    "EngineSoftware",
    "GraphFormat",
    "DeviceProfiles",
    "dump_profiles",
    "engine_package",
    "read_profiles",
    "Program",
    "ProgramRole",
    "ProgramSpec",
    "SAMPLE_WEIGHTS",
    "runs_on",
    "Enrolment",
    "Enrolled",
    "Assignment",
    "Refusal",
    "Reason",
    "Receipt",
    "Outcome",
    "Pins",
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
    "added_settings",
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
