"""The request for a simulation: everything that its result depends on, and nothing else.

`edgefl simulate` makes one from its options, a run folder keeps it as `request.json`, and `simulation_inputs` loads
what it names. How the work is spread over processes is not part of it: the result does not depend on that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgefl.artifacts.bundle import Bundle
from edgefl.data import Dataset, load, some_samples
from edgefl.errors import EdgeFLError
from edgefl.federation.settings import FederationSettings
from edgefl.federation.strategy import check_features, federation_strategy
from edgefl.simulation.availability import Availability, Sessions, read_trace
from edgefl.simulation.device_class import DeviceClass
from edgefl.simulation.fleet import FleetDevice, fleet_of
from edgefl.simulation.nights import nightly_from
from edgefl.simulation.run_cost import CostLimits
from edgefl.strategies import Strategy
from edgefl.values import FieldError, Fraction, PositiveCount, check_fields, document, from_json
from edgefl.values.strict_json import parse

__all__ = ["SimulationRequest", "SimulationInputs", "read_request", "simulation_inputs"]


@document("simulation", version=2)
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationRequest:
    """What is simulated."""

    model: str
    """As it was named: a built-in model, a model of the zoo, a bundle, or package.module:factory."""
    data: str = "digits"
    folder: str | None = field(default=None, metadata={"absent": "where it is usually"})
    partition: str = "iid"
    devices: PositiveCount = 8
    samples: PositiveCount | None = field(default=None, metadata={"absent": "all"})
    """Training samples of the data set that are used, drawn at random."""
    test_samples: PositiveCount | None = field(default=None, metadata={"absent": "all"})
    validation: Fraction = 0.1
    test: Fraction = 0.2
    """Share of its samples that each device's own model is evaluated on."""
    classes: tuple[DeviceClass, ...] = (DeviceClass(),)
    trace: str | None = field(default=None, metadata={"absent": "by chance, as the classes say"})
    """A CSV file that says when devices are online."""
    availability: str | None = field(default=None, metadata={"absent": "by chance, as the classes say"})
    """A scheme that says when devices are online, such as 'nightly'."""
    resumes: bool = False
    """Whether a device that goes offline continues its task when it is back."""
    until: CostLimits = field(default=CostLimits(), metadata={"added": True})
    """What may be spent: no round opens once one of these limits is reached."""
    federation: FederationSettings = field(default_factory=lambda: FederationSettings(name="simulation"))
    """Strategy, rounds, selection and local work, as a coordinator is configured."""
    personalise: bool = True
    """Whether devices personalise the final model, where the strategy says how, and are evaluated."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.trace is not None and self.availability is not None:
            raise FieldError(
                "is given beside a trace", fix="Give --trace or --availability, not both", path=("availability",)
            )
        unknown = next((kind.name for kind in self.classes if kind.busy_watts is None), None)
        if self.until.joules is not None and unknown is not None:
            raise FieldError(
                f"limits the energy, but class {unknown!r} has no power figures",
                fix="Give its idle_watts and busy_watts, or limit something else",
                path=("until",),
            )


def read_request(text: bytes) -> SimulationRequest:
    """Return the request in a JSON text of this version or of an earlier one."""
    data = parse(text)
    if isinstance(data, dict) and data.get("schema") == _VERSION_1:
        data = _from_version_1(data)
    if isinstance(data, dict) and "most_seconds" in data:  # how the limit of time was written before there were others
        data = {name: value for name, value in data.items() if name != "most_seconds"} | {
            "until": {"seconds": data["most_seconds"]}
        }
    return from_json(SimulationRequest, data)


_VERSION_1 = "edgefl.simulation/1"


def _from_version_1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as it is written now. Version 1 had settings of its own for the federation."""
    kept = {name: value for name, value in data.items() if name not in ("schema", "strategy", "settings", "federation")}
    old = data.get("federation", {})
    rounds = old.get("rounds", 10)
    federation = {
        "name": "simulation",
        "seed": old.get("seed", "0"),
        "strategy": {"name": data.get("strategy", "fedavg"), "settings": data.get("settings", {})},
        "work": old.get("work", {}),
        "rounds": {"count": rounds, "deadline": old.get("deadline", 600.0)},
        "selection": {"devices": old.get("per_round", 10)},
        "evaluation": {"data": "test", "every": old.get("evaluate_every", 1) or rounds},
        "round_share": old.get("deadline_share", 0.5),
    }
    return {"schema": "edgefl.simulation/2", **kept, "federation": federation}


@dataclass(frozen=True, slots=True, eq=False)
class SimulationInputs:
    """What a request refers to, loaded."""

    dataset: Dataset
    fleet: tuple[FleetDevice, ...]
    strategy: Strategy
    availability: Availability


def simulation_inputs(request: SimulationRequest, bundle: Bundle) -> SimulationInputs:
    """Load the data, partition it, and build the strategy. Raise an `EdgeFLError` if they do not fit together."""
    strategy = federation_strategy(request.federation)
    check_features(strategy, bundle)
    dataset = some_samples(load(request.data, request.folder), request.samples, request.test_samples)
    _check_fit(dataset, bundle, request)
    fleet = fleet_of(
        dataset,
        clients=request.devices,
        scheme=request.partition,
        classes=request.classes,
        seed=request.federation.seed,
        validation=request.validation,
        test=request.test,
    )
    return SimulationInputs(dataset, fleet, strategy, _availability(request, fleet))


def _availability(request: SimulationRequest, fleet: tuple[FleetDevice, ...]) -> Availability:
    if request.trace is not None:
        return read_trace(Path(request.trace), fleet)
    if request.availability is not None:
        return nightly_from(request.availability, request.federation.seed)
    return Sessions(request.federation.seed)


def _check_fit(dataset: Dataset, bundle: Bundle, request: SimulationRequest) -> None:
    shape, wanted = tuple(dataset.train.features.shape[1:]), tuple(bundle.manifest.input_shape)
    classes = bundle.graph.classes
    if shape != wanted:
        raise EdgeFLError(
            f"the samples of {request.data} are {'x'.join(map(str, shape))}, but {request.model} takes "
            f"{'x'.join(map(str, wanted))}",
            fix="Choose a model for this data with --model, or other data with --data.",
        )
    if classes is not None and dataset.classes > classes:
        raise EdgeFLError(
            f"{request.data} has {dataset.classes} classes, but {request.model} knows {classes}",
            fix="Choose a model that knows them, or export one with --classes.",
        )
