"""Which strategy takes part in which comparison. A new strategy is one line here; without one, it is run on the digits.

What is said here comes on top of what the set-up tells all strategies alike.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """What it is tuned over where the set-up is tuned, if that is not the set-up's rates alone."""
    limit: Limit = Limit.NOTHING
    fitted_levels: bool = False
    """Whether its levels are the widths whose parts are as large as the set-up's capacities: levels are shares of the
    width, and parts of the next smaller one of HeteroFL's would use a third of what a device can do."""
    epochs: int | None = None
    """Passes over a device's data in a round, if there are fewer than the set-up's."""
    rounds: float = 1.0
    """Its rounds as a share of the set-up's, for comparisons at equal cost."""
    capacities: tuple[float, ...] = ()
    """Kinds of devices, if they are not the set-up's."""
    fine_tuned: tuple[int, ...] = ()
    """Numbers of epochs of fine-tuning after which devices are judged too."""
    judged_by: str = ""
    """The measure that it is tuned for, if it is not the set-up's: the one that its claims are about."""
    like: str = ""
    """The label of the entry whose tuned settings it shares: an ablation differs from its method in one thing."""


_FINE_TUNED = (1, 2, 5, 10)
"""Epochs; 2 and 10 are in PerFedMask's Table 3."""
_FEDMRN: Mapping[str, Setting] = {"learning_rate": 0.1}
_GRIDS: Mapping[str, Mapping[str, Sequence[float]]] = {
    "fedmrn": {"learning_rate": (0.1, 0.3), "noise_bound": (0.01, 0.05)},
    "fedmrn signed": {"learning_rate": (0.1, 0.3), "noise_bound": (0.005, 0.05)},
    "fedpm": {"learning_rate": (0.1,), "score_rate": (0.03, 0.1, 0.3)},
    "per_fedavg": {"learning_rate": (0.1, 0.3), "inner_rate": (0.01, 0.1)},
    "split_mix": {"learning_rate": (0.03, 0.1), "base_networks": (4, 8)},
}
"""What strategies are tuned over that have more than a rate, or another one: three or four candidates, as others have.
FedMRN's best bound depends on the size of the model; the first is its paper's. FedPM learns scores. Per-FedAvg makes a
third as many updates, and adapts at the end with the rate that it adapted with while it learned. An eighth of a small
network has two channels, so Split-Mix may have fewer networks than its authors' 8."""
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
of a small one are in every larger one too. Chosen on seeds 0 to 2 with a mask rate of 10; on seeds 3 to 5, by which
nothing was chosen, its submodel of 1/16 had 61.0 %, and so had HeteroFL's with levels that fit the capacities
(differences of +5.1, -2.1 and -3.0). Drawn at random every round, as in the paper, small submodels are hardly ever
trained as what they are in the end, however many rounds there are."""
_FEDMAP_MAGNITUDE: Mapping[str, Setting] = {
    "drawing": "top",
    "mask_rounds": 0,
    "first_weight_rounds": 20,
    "first_probabilities": "magnitude",
}
"""Nothing is learned: after some rounds of weights, masks are by magnitude (`benchmarks/fedmap_masks.py`)."""


def _entry(
    setup: str,
    label: str,
    settings: Mapping[str, Setting] | None = None,
    limit: Limit = Limit.NOTHING,
    *,
    like: str = "",
    judged_by: str = "",
) -> Entry:
    """Return an entry whose label begins with the name of its strategy."""
    return Entry(
        setup=setup,
        label=label,
        strategy=label.split()[0],
        settings=settings or {},
        grid=_GRIDS.get(label, _GRIDS.get(label.split()[0], {})),
        limit=limit,
        like=like,
        judged_by=judged_by,
    )


def _uplinks(setup: str, labels: Iterable[str] = _UPLINKS) -> list[Entry]:
    return [_entry(setup, label, _UPLINKS[label]) for label in labels]


_IN_TABLE_1 = tuple(name for name in _UPLINKS if name != "random_subsampling")
_FEDMRN_PARTS: Sequence[Entry] = [
    *(
        _entry("uplink", f"fedmrn {masking}", {"noise_masking": masking}, like="fedmrn")
        for masking in ("progressive", "stochastic", "deterministic")
    ),
    *(
        _entry("uplink", f"fedmrn {noise}", {"noise_distribution": noise}, like="fedmrn")
        for noise in ("gaussian", "bernoulli")
    ),
]
"""Figures 4 and 5 of its paper."""

_FREEZING: Sequence[Entry] = [
    replace(_entry("freezing", "perfedmask", limit=Limit.TRAINED), fine_tuned=_FINE_TUNED),
    _entry("freezing", "perfedmask random", {"planner": "random"}, Limit.TRAINED, like="perfedmask"),
    *(
        replace(_entry("freezing", f"perfedmask {name}", limit=Limit.TRAINED, like="perfedmask"), capacities=kinds)
        for name, kinds in (("fifth strong", (1.0, *[0.125] * 4)), ("all strong", (1.0,)))
    ),
    replace(_entry("freezing", "perfedmask heterofl", {"width": "levels"}, Limit.KEPT), fitted_levels=True),
    replace(_entry("freezing", "fedbabu", limit=Limit.EPOCHS), fine_tuned=_FINE_TUNED),
    _entry("freezing", "fedavg", limit=Limit.EPOCHS),
    _entry("freezing", "fedprox", limit=Limit.EPOCHS),
    _entry("freezing", "fednova", limit=Limit.EPOCHS),
    replace(_entry("freezing", "heterofl", limit=Limit.KEPT), fitted_levels=True),
    _entry("freezing", "split_mix", limit=Limit.KEPT),
    _entry("freezing", "split_mix perfedmask", {"frozen": "planned"}, Limit.KEPT),
    *(
        replace(_entry("freezing", f"fedavg {name}", limit=Limit.EPOCHS, like="fedavg"), rounds=share)
        for name, share in (("equal bytes", 0.76), ("equal work", 1.21))
    ),
]
"""Tables 1 to 5 of PerFedMask, and FedAvg with as many rounds as take PerFedMask's bytes, or its multiply-adds.

In a round of `--standard`, PerFedMask moves 0.76 of FedAvg's bytes. It computes 1.21 times as much, since weak devices
make all steps, where those of FedAvg make half of them."""
_FREEZING_OWN = [
    replace(one, setup="freezing-own", fine_tuned=())
    for one in _FREEZING
    if one.label
    in ("perfedmask", "fedbabu", "fedavg", "fedavg equal bytes", "fedavg equal work", "heterofl", "split_mix")
]
"""Not in its paper: weak devices with classes of their own."""

_CHANNELS: Sequence[Entry] = [
    _entry("channels", "hermes"),
    _entry("channels", "hermes magnitude", {"prune_by": "magnitude"}),
    _entry("channels", "hermes half", {"kept_target": 0.5}, like="hermes"),
    _entry("channels", "hermes four fifths", {"kept_target": 0.8}, like="hermes"),
    _entry("channels", "fedavg", {"fine_tune_epochs": 0}, judged_by="before"),
    _entry("channels", "fedavg tuned", {"fine_tune_epochs": 5}),
    _entry("channels", "topk", {"fine_tune_epochs": 0}, judged_by="before"),
    _entry("channels", "lg_fedavg", {"whole_rounds": 20}),
    _entry("channels", "per_fedavg", {"fine_tune_epochs": 1}),
    _entry("channels", "local"),
]
"""Figure 7 and Table 2 of Hermes; its devices predict with the models of FedAvg and Top-k as they are."""

# FedSpa, section 5.1, gives Ditto a pull of 0.5, 3 epochs for a device's own model and 2 for the global one, so that it
# trains as much as others do in 5. Here both models take every step together: with 3 epochs neither has fewer. In
# rounds of fewer epochs it trains as many as the others.
_WEIGHTS: Sequence[Entry] = [
    _entry("weights", "fedspa"),
    _entry("weights", "fedspa holders", {"overlap": "holders"}, like="fedspa"),
    _entry("weights", "fedspa static", {"method": "static", "first_masks": "same"}),
    *(_entry("weights", f"fedspa {density}", {"density": density}, like="fedspa") for density in (0.8, 0.2)),
    _entry("weights", "fedspa channel", {"granularity": "channel"}, like="fedspa"),
    _entry("weights", "fedavg"),
    _entry("weights", "random_subsampling", {"sent_share": 0.5}),
    _entry("weights", "sub_fedavg", {"prune_rate": 0.1, "kept_target": 0.5}, judged_by="after"),
    _entry("weights", "local", judged_by="after"),
    replace(_entry("weights", "ditto", {"pull": 0.5}, judged_by="after"), epochs=3),
]
"""Tables 1 and 3 of FedSpa."""

_SIZES: Sequence[Entry] = [
    _entry("sizes", "fedmap", limit=Limit.DENSITY),
    _entry("sizes", "fedmap unlearned", {"mask_rounds": 0}, Limit.DENSITY),
    _entry("sizes", "fedmap magnitude", _FEDMAP_MAGNITUDE, Limit.DENSITY),
    _entry("sizes", "fedmap channel", {"granularity": "channel"}, Limit.KEPT),
    _entry("sizes", "fedmap channel top", _FEDMAP_NESTED, Limit.KEPT),
    _entry("sizes", "fedmap channel top unlearned", {**_FEDMAP_NESTED, "mask_rounds": 0}, Limit.KEPT),
    *(
        Entry(setup="sizes", label=name, strategy=name, limit=Limit.KEPT, fitted_levels=True)
        for name in ("heterofl", "fedrolex", "fjord")
    ),
]
"""Table 1 and Figure 2 of FedMAP."""

_ENTRIES: Sequence[Entry] = [
    *_uplinks("bytes"),
    *_uplinks("uplink-small", ("fedavg", "fedmrn", "fedmrn signed", "signsgd", "topk", "eden")),
    *_uplinks("uplink", _IN_TABLE_1),
    *_FEDMRN_PARTS,
    *_uplinks("uplink-labels", _IN_TABLE_1),
    *_uplinks("uplink-iid", _IN_TABLE_1),
    *_FREEZING,
    *_FREEZING_OWN,
    *_CHANNELS,
    *_WEIGHTS,
    *_SIZES,
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
