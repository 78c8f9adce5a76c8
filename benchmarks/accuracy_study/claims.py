"""The claims of the papers about strategies, as functions that check the figures: held or not held.

Claims compare means over seeds, in points (hundredths of accuracy). Beside a difference or a ratio stands its standard
deviation over seeds, each seed compared with itself: a difference below it may as well be chance. A claim whose
strategies were not run is left out.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.accuracy_study.figures import Figures, Value

__all__ = ["CLAIMS", "Verdict", "judged"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and the figures behind it."""

    claim: str
    held: bool
    figures: str


_FEDMAPS = ("fedmap", "fedmap channel top")

Claim = Callable[[Figures], Sequence[Verdict]]


class _NotRunError(Exception):
    """Something that a claim is about was not run."""


def judged(figures: Figures) -> list[Verdict]:
    """Return the verdicts on all claims whose strategies were run."""
    verdicts: list[Verdict] = []
    for claim in CLAIMS:
        try:
            verdicts.extend(claim(figures))
        except _NotRunError:
            continue
    return verdicts


def fedmrn_keeps_fedavgs_accuracy(figures: Figures) -> Sequence[Verdict]:
    """FedMRN, Table 1: within 1.0 point of FedAvg, above SignSGD and Top-k at the same bits."""
    verdicts = []
    for setup in _setups(figures, "uplink"):
        fedavg, fedmrn = (_points(figures, setup, name, "accuracy") for name in ("fedavg", "fedmrn"))
        verdicts.append(
            Verdict(
                f"{setup}: FedMRN is within 1.0 point of FedAvg",
                fedmrn.mean >= fedavg.mean - 1.0,
                _against(fedmrn, fedavg),
            )
        )
        for name in ("signsgd", "topk"):
            other = _points(figures, setup, name, "accuracy")
            verdicts.append(_above(f"{setup}: FedMRN is above {name} at the same bits", fedmrn, other))
    return verdicts


def fedmrn_sends_a_twenty_sixth(figures: Figures) -> Sequence[Verdict]:
    """FedMRN: one bit a weight and full norms, headers included, are at least 26 times fewer bytes for CNN4."""
    setup = "bytes" if ("bytes", "fedmrn") in figures else "uplink"
    dense, bits = (_value(figures, setup, name, "up_bytes") for name in ("fedavg", "fedmrn"))
    return [
        Verdict(
            "FedMRN sends at least 26 times fewer bytes than FedAvg (CNN4)",
            dense.mean >= 26 * bits.mean,
            f"{dense.mean:,.0f} against {bits.mean:,.0f} bytes an update, {_times(dense, bits)} times",
        )
    ]


def perfedmask_is_above_fedavg_and_fedprox(figures: Figures) -> Sequence[Verdict]:
    """PerFedMask, Table 1: best after the same fine-tuning, where slow devices of the others make half the passes."""
    own = _points(figures, "freezing", "perfedmask", "after")
    return [
        _above(f"PerFedMask is above {name}, both fine-tuned", own, _points(figures, "freezing", name, "after"))
        for name in ("fedavg", "fedprox")
    ]


def perfedmask_is_near_fedbabu(figures: Figures) -> Sequence[Verdict]:
    """PerFedMask, Table 1: comparable to FedBABU with 55 % of its trained parameters."""
    own, other = (_points(figures, "freezing", name, "after") for name in ("perfedmask", "fedbabu"))
    few, many = (_value(figures, "freezing", name, "trained_fraction") for name in ("perfedmask", "fedbabu"))
    return [
        Verdict(
            "PerFedMask is within 1 point of FedBABU with at most 60 % of its trained parameters",
            own.mean >= other.mean - 1.0 and few.mean <= 0.6 * many.mean,
            f"{_against(own, other)}, {_percent(few, many)} of the trained parameters",
        )
    ]


def optimised_masks_are_no_worse_than_random(figures: Figures) -> Sequence[Verdict]:
    """PerFedMask, section 6.3: optimised masks against random ones of the same budgets."""
    own, other = (_points(figures, "freezing", name, "after") for name in ("perfedmask", "perfedmask random"))
    held = own.mean >= other.mean
    return [Verdict("PerFedMask's masks are no worse than random ones", held, _against(own, other))]


def hermes_is_personal_and_small(figures: Figures) -> Sequence[Verdict]:
    """Hermes, Figure 7: above FedAvg and training alone on devices' own samples, with fewer bytes.

    FedAvg's devices predict with the global model, as in the paper. Two classes a device are the paper's; the digits
    are a second opinion.
    """
    verdicts = []
    for setup in ("channels", "digits"):
        own, alone = (_points(figures, setup, name, "after") for name in ("hermes", "local"))
        less, more = (_traffic(figures, setup, name) for name in ("hermes", "fedavg"))
        fedavg = _points(figures, setup, "fedavg", "before")
        verdicts += [
            _above(f"{setup}: Hermes' personal models are above FedAvg's global one", own, fedavg),
            _above(f"{setup}: Hermes' personal models are above training alone", own, alone),
            Verdict(
                f"{setup}: Hermes takes at most 60 % of FedAvg's bytes",
                less.mean <= 0.6 * more.mean,
                f"{_percent(less, more)}, {less.mean:,.0f} against {more.mean:,.0f} bytes an update, up and down",
            ),
        ]
    return verdicts


def fedspa_is_above_fedavg_at_half_the_bytes(figures: Figures) -> Sequence[Verdict]:
    """FedSpa, Table 1: FedSpa (DST) above FedAvg in the strongest non-IID split, with half of the communication.

    A device's model is its mask of the global one, and FedAvg's is the global one. The paper does not compare what both
    are after a device trained them once more; it is judged here all the same.
    """
    own, other = (_points(figures, "weights", name, "after") for name in ("fedspa", "fedavg"))
    before, others_before = (_points(figures, "weights", name, "before") for name in ("fedspa", "fedavg"))
    less, more = (_value(figures, "weights", name, "up_bytes") for name in ("fedspa", "fedavg"))
    return [
        _above("FedSpa is above FedAvg after a device trained both (not in the paper)", own, other),
        _above("FedSpa's masks of the global model are above FedAvg's global model", before, others_before),
        Verdict(
            "FedSpa sends at most half of FedAvg's bytes, masks included",
            less.mean <= 0.5 * more.mean,
            f"{_percent(less, more)}, {less.mean:,.0f} against {more.mean:,.0f} bytes an update",
        ),
    ]


def fedmaps_small_models_are_better(figures: Figures) -> Sequence[Verdict]:
    """FedMAP, Table 1: its 1/16 submodel is above static and rolling ones of the same size; as in the paper, and with
    nested submodels of channels (`entries.py`)."""
    return [
        _above(
            f"{label}'s 1/16 submodel is above {name}'s",
            _size(figures, label, 0.0625),
            _size(figures, name, 0.0625),
        )
        for label in _FEDMAPS
        for name in ("heterofl", "fedrolex")
    ]


def fedmap_has_every_size(figures: Figures) -> Sequence[Verdict]:
    """FedMAP, section 5.2: a size that no device had lies between its neighbours, give or take a point."""
    verdicts = []
    for label in _FEDMAPS:
        for smaller, unseen, larger in ((0.0625, 0.125, 0.25), (0.015625, 0.03125, 0.0625)):
            low, own, high = (_size(figures, label, size) for size in (smaller, unseen, larger))
            verdicts.append(
                Verdict(
                    f"{label}'s unseen size {unseen:g} is between {smaller:g} and {larger:g}",
                    min(low.mean, high.mean) - 1.0 <= own.mean <= max(low.mean, high.mean) + 1.0,
                    f"{_against(own, low)}; {_against(own, high)}",
                )
            )
    return verdicts


CLAIMS: Sequence[Claim] = (
    fedmrn_keeps_fedavgs_accuracy,
    fedmrn_sends_a_twenty_sixth,
    perfedmask_is_above_fedavg_and_fedprox,
    perfedmask_is_near_fedbabu,
    optimised_masks_are_no_worse_than_random,
    hermes_is_personal_and_small,
    fedspa_is_above_fedavg_at_half_the_bytes,
    fedmaps_small_models_are_better,
    fedmap_has_every_size,
)
"""All claims."""


def _setups(figures: Figures, prefix: str) -> list[str]:
    return [name for name in dict.fromkeys(setup for setup, _ in figures) if name.startswith(prefix)]


def _value(figures: Figures, setup: str, label: str, measure: str) -> Value:
    figure = figures.get((setup, label))
    if figure is None or measure not in figure.values:
        raise _NotRunError
    return figure.values[measure]


def _points(figures: Figures, setup: str, label: str, measure: str) -> Value:
    return _in_points(_value(figures, setup, label, measure))


def _size(figures: Figures, label: str, size: float) -> Value:
    figure = figures.get(("sizes", label))
    if figure is None or size not in figure.sizes:
        raise _NotRunError
    return _in_points(figure.sizes[size])


def _traffic(figures: Figures, setup: str, label: str) -> Value:
    up, down = (_value(figures, setup, label, name) for name in ("up_bytes", "down_bytes"))
    return _compared(up, down, operator.add)


def _in_points(value: Value) -> Value:
    return _compared(value, value, lambda share, _: 100 * share)


def _compared(own: Value, other: Value, how: Callable[[float, float], float]) -> Value:
    """Return a comparison seed by seed; one whose strategies have no seed in common cannot be made."""
    found = own.with_each(other, how)
    if found is None:
        raise _NotRunError
    return found


def _above(claim: str, own: Value, other: Value) -> Verdict:
    return Verdict(claim, own.mean > other.mean, _against(own, other))


def _against(own: Value, other: Value) -> str:
    difference = _compared(own, other, operator.sub)
    return f"{own.mean:.1f} against {other.mean:.1f}, {difference.mean:+.1f}{_deviation(difference)}"


def _times(more: Value, less: Value) -> str:
    ratio = _compared(more, less, operator.truediv)
    return f"{ratio.mean:.1f}{_deviation(ratio)}"


def _percent(less: Value, more: Value) -> str:
    ratio = _compared(less, more, lambda one, other: 100 * one / other)
    return f"{ratio.mean:.1f}{_deviation(ratio)} %"


def _deviation(value: Value) -> str:
    """Return how far seeds differ; a single seed says nothing about that."""
    return f" ±{value.deviation:.1f}" if len(value.by_seed) > 1 else ""
