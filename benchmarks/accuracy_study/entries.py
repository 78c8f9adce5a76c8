"""Which strategy takes part in which comparison. A new strategy is one line here; without one, it is run on the digits.

What is said here comes on top of what the set-up tells all strategies alike.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.accuracy_study.setups import Setup
from edgefl.masks import kept_width
from edgefl.model_graph import ModelGraph, cost_of
from edgefl.strategies import STRATEGIES
from edgefl.values import Setting, settings_of

__all__ = ["Entry", "Limit", "entries_of", "levels_for", "settings_in"]


class Limit(StrEnum):
    """What a device of a capacity below 1 has less of."""

    NOTHING = "nothing"
    EPOCHS = "epochs"
    """Half the passes: how PerFedMask's Table 1 treats methods that do not plan."""
    TRAINED = "trained"
    """Parameters that it can train."""
    KEPT = "kept"
    """Parameters that it can have."""
    DENSITY = "density"
    """Weights that it can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A strategy in a comparison."""

    setup: str
    label: str
    strategy: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Setting]] = field(default_factory=dict)
    """What it is tuned over where the set-up is tuned, if that is not the set-up's rates alone."""
    limit: Limit = Limit.NOTHING
    fitted_levels: bool = False
    """Whether its levels are the widths whose parts are as large as the set-up's capacities: levels are shares of the
    width, and parts of the next smaller one of HeteroFL's would use a third of what a device can do."""
    epochs: int | None = None
    """Passes over a device's data in a round; None is the set-up's number."""


_FEDMRN: Mapping[str, Setting] = {"learning_rate": 0.1}
_FEDMRN_GRID: Mapping[str, Sequence[Setting]] = {"learning_rate": (0.1, 0.3), "noise_bound": (0.01, 0.05)}
"""Its weights are noise, so its rates are larger; the best bound depends on the size of the model."""
_UPLINKS: Mapping[str, Mapping[str, Setting]] = {
    "fedavg": {},
    "fedmrn": _FEDMRN,
    "fedmrn signed": {**_FEDMRN, "noise_masks": "signed"},
    "fedpm": {"learning_rate": 0.1},
    "signsgd": {},
    "topk": {},
    "terngrad": {},
    "drive": {},
    "eden": {},
    "random_subsampling": {},
    "fedsparsify": {},
}


_FEDMAP_NESTED: Mapping[str, Setting] = {
    "granularity": "channel",
    "drawing": "top",
    "mask_rounds": 2,
    "weight_rounds": 10_000,
}
"""Masks are learned once, in the first two rounds, and devices train the most probable channels of their size: those
of a small one are in every larger one too. Chosen on seeds 0 to 2; on seeds 3 to 5, by which nothing was chosen, its
submodel of 1/16 had 61.0 %, and so had HeteroFL's with levels that fit the capacities (differences of +5.1, -2.1 and
-3.0). Drawn at random every round, as in the paper, small submodels are hardly ever trained as what they are in the
end: that takes more rounds than a quick study has."""


def _entry(
    setup: str, label: str, settings: Mapping[str, Setting] | None = None, limit: Limit = Limit.NOTHING
) -> Entry:
    """Return an entry whose label begins with the name of its strategy."""
    grid = _FEDMRN_GRID if label.startswith("fedmrn") else {}
    return Entry(setup=setup, label=label, strategy=label.split()[0], settings=settings or {}, grid=grid, limit=limit)


def _uplinks(setup: str, labels: Iterable[str] = _UPLINKS) -> list[Entry]:
    return [_entry(setup, label, _UPLINKS[label]) for label in labels]


# FedSpa, section 5.1, gives Ditto a pull of 0.5, 3 epochs for a device's own model and 2 for the global one, so that it
# trains as much as others do in 5. Here both models take every step together: with 3 epochs neither has fewer.
_ENTRIES: Sequence[Entry] = [
    *_uplinks("bytes"),
    *_uplinks("uplink-small", ("fedavg", "fedmrn", "fedmrn signed", "signsgd", "topk", "eden")),
    *_uplinks("uplink"),
    *_uplinks("uplink-labels"),
    *_uplinks("uplink-iid"),
    _entry("freezing", "perfedmask", limit=Limit.TRAINED),
    _entry("freezing", "perfedmask random", {"planner": "random"}, Limit.TRAINED),
    _entry("freezing", "fedbabu", limit=Limit.EPOCHS),
    _entry("freezing", "fedavg", limit=Limit.EPOCHS),
    _entry("freezing", "fedprox", limit=Limit.EPOCHS),
    _entry("freezing", "fednova", limit=Limit.EPOCHS),
    _entry("freezing", "heterofl", limit=Limit.KEPT),
    _entry("freezing", "split_mix", limit=Limit.KEPT),
    _entry("channels", "hermes"),
    _entry("channels", "hermes magnitude", {"prune_by": "magnitude"}),
    _entry("channels", "fedavg"),
    _entry("channels", "fedavg tuned", {"fine_tune_epochs": 5}),
    _entry("channels", "local"),
    _entry("channels", "ditto"),
    _entry("weights", "fedspa"),
    _entry("weights", "fedspa holders", {"overlap": "holders"}),
    _entry("weights", "fedspa static", {"method": "static", "first_masks": "same"}),
    _entry("weights", "fedspa channel", {"granularity": "channel"}),
    _entry("weights", "fedavg"),
    _entry("weights", "local"),
    Entry(setup="weights", label="ditto", strategy="ditto", settings={"pull": 0.5}, epochs=3),
    _entry("sizes", "fedmap", limit=Limit.DENSITY),
    _entry("sizes", "fedmap unlearned", {"mask_rounds": 0}, Limit.DENSITY),
    _entry("sizes", "fedmap channel", {"granularity": "channel"}, Limit.KEPT),
    _entry("sizes", "fedmap channel top", _FEDMAP_NESTED, Limit.KEPT),
    _entry("sizes", "fedmap channel top unlearned", {**_FEDMAP_NESTED, "mask_rounds": 0}, Limit.KEPT),
    *(
        Entry(setup="sizes", label=name, strategy=name, limit=Limit.KEPT, fitted_levels=True)
        for name in ("heterofl", "fedrolex", "fjord")
    ),
]

_ON_DIGITS: Mapping[str, Mapping[str, Setting]] = {
    "fedmrn": {"learning_rate": 0.3, "noise_bound": 0.05},
}
"""What a strategy is told on the digits beside its defaults."""


def levels_for(graph: ModelGraph, capacities: Sequence[float]) -> str:
    """Return the widest levels, in thousandths, whose parts have at most these shares of the parameters."""
    steps = range(1, 1001)

    def share(step: int) -> float:
        widths = {group.name: kept_width(group, step / 1000) for group in graph.groups}
        return cost_of(graph, widths).parameters / graph.parameters

    found = [bisect_right(steps, capacity, key=share) for capacity in capacities]
    return ", ".join(f"{step / 1000:g}" for step in sorted({max(1, step) for step in found}, reverse=True))


def entries_of(setups: Sequence[str], strategies: Sequence[str] | None = None) -> list[Entry]:
    """Return the entries of some comparisons, of all strategies that there are or of some."""
    wanted = [name for name in STRATEGIES if strategies is None or name in strategies]
    on_digits = [
        Entry(setup="digits", label=name, strategy=name, settings=_ON_DIGITS.get(name, {})) for name in STRATEGIES
    ]
    listed = [*on_digits, *_ENTRIES]
    return [entry for entry in listed if entry.setup in setups and entry.strategy in wanted]


def settings_in(setup: Setup, entry: Entry) -> dict[str, Setting]:
    """Return all that a strategy is told: what all are told, as far as it knows such settings, and its own."""
    known = settings_of(STRATEGIES[entry.strategy])
    return {name: value for name, value in setup.settings.items() if name in known} | dict(entry.settings)
