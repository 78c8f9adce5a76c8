"""Claims about what is counted (bytes, parameters), and those that compare more than two figures."""

import operator
from collections.abc import Callable, Sequence

from benchmarks.accuracy_study.figures import Figures, Value
from benchmarks.accuracy_study.verdicts import (
    Ruling,
    Verdict,
    against,
    both,
    no_worse,
    percent,
    ratio,
    series_points,
    value_of,
)

__all__ = ["COUNTED"]


def fedmrn_sends_a_twenty_sixth(figures: Figures) -> Sequence[Verdict]:
    """FedMRN: one bit a weight and full norms, headers included, are at least 26 times fewer bytes for CNN4."""
    setup = "bytes" if ("bytes", "fedmrn") in figures else "uplink"
    dense, bits = (value_of(figures, setup, name, "up_bytes") for name in ("fedavg", "fedmrn"))
    times = both(dense, bits, operator.truediv)
    return [
        Verdict(
            paper="FedMRN",
            claim="FedMRN sends at least 26 times fewer bytes than FedAvg (CNN4)",
            published="32 times",
            figures=f"{dense.mean:,.0f} against {bits.mean:,.0f} bytes an update, {times.mean:.1f} times",
            ruling=ratio(times.mean >= 26),
        )
    ]


def perfedmask_trains_few_parameters(figures: Figures) -> Sequence[Verdict]:
    """PerFedMask, Table 1: 55 % of FedBABU's trained parameters on CIFAR-10."""
    few, many = (value_of(figures, "freezing", name, "trained_fraction") for name in ("perfedmask", "fedbabu"))
    return [
        Verdict(
            paper="PerFedMask",
            claim="freezing: PerFedMask trains at most 60 % of FedBABU's parameters",
            published="55.0 %",
            figures=percent(few, many),
            ruling=ratio(few.mean <= 0.6 * many.mean),
        )
    ]


def hermes_takes_fewer_bytes(figures: Figures) -> Sequence[Verdict]:
    """Hermes, Figure 7 and Table 2: fewer bytes than FedAvg, up and down."""
    verdicts = []
    for setup in (name for name in ("channels", "digits") if (name, "hermes") in figures):
        less, more = (_traffic(figures, setup, name) for name in ("hermes", "fedavg"))
        verdicts.append(
            Verdict(
                paper="Hermes",
                claim=f"{setup}: Hermes takes at most 60 % of FedAvg's bytes, up and down",
                published="-",
                figures=f"{percent(less, more)}, {less.mean:,.0f} against {more.mean:,.0f} bytes an update",
                ruling=ratio(less.mean <= 0.6 * more.mean),
            )
        )
    return verdicts


def hermes_keeps_different_channels(figures: Figures) -> Sequence[Verdict]:
    """Not in the paper: by sensitivity, devices without a common class keep different channels, and download less."""
    own, letter = (value_of(figures, "channels", name, "overlap") for name in ("hermes", "hermes magnitude"))
    chance, other = (
        value_of(figures, "channels", name, "overlap_by_chance") for name in ("hermes", "hermes magnitude")
    )
    less, more = (value_of(figures, "channels", name, "down_bytes") for name in ("hermes", "hermes magnitude"))
    return [
        Verdict(
            paper="Hermes",
            claim="channels: by sensitivity, masks are at most half as much more alike than by chance as by magnitude",
            published="-",
            figures=f"{own.mean:.2f}, {chance.mean:.2f} by chance; {letter.mean:.2f}, {other.mean:.2f} by chance",
            ruling=ratio(own.mean - chance.mean <= (letter.mean - other.mean) / 2),
        ),
        Verdict(
            paper="Hermes",
            claim="channels: by sensitivity, Hermes downloads fewer bytes than by magnitude",
            published="-",
            figures=f"{percent(less, more)}, {less.mean:,.0f} against {more.mean:,.0f} bytes an update",
            ruling=ratio(less.mean < more.mean),
        ),
    ]


def _traffic(figures: Figures, setup: str, label: str) -> Value:
    up, down = (value_of(figures, setup, label, way) for way in ("up_bytes", "down_bytes"))
    return both(up, down, operator.add)


def fedspa_sends_half(figures: Figures) -> Sequence[Verdict]:
    """FedSpa, Table 1: half of FedAvg's communication at density 0.5; the paper leaves the masks out."""
    verdicts = []
    more = value_of(figures, "weights", "fedavg", "up_bytes")
    for label, name in (("fedspa static", "static masks"), ("fedspa", "moving masks, which are sent")):
        less = value_of(figures, "weights", label, "up_bytes")
        verdicts.append(
            Verdict(
                paper="FedSpa",
                claim=f"weights: FedSpa sends at most half of FedAvg's bytes: {name}",
                published="49.6 %",
                figures=f"{percent(less, more)}, {less.mean:,.0f} against {more.mean:,.0f} bytes an update",
                ruling=ratio(less.mean <= 0.505 * more.mean),
            )
        )
    return verdicts


def fedmap_has_every_size(figures: Figures) -> Sequence[Verdict]:
    """FedMAP, section 5.2: a size that no device had lies between its neighbours, give or take a point."""
    verdicts = []
    for label in ("fedmap", "fedmap channel top"):
        for smaller, unseen, larger in ((0.0625, 0.125, 0.25), (0.015625, 0.03125, 0.0625)):
            low, own, high = (
                series_points(figures, "sizes", label, "size", size) for size in (smaller, unseen, larger)
            )
            bottom, top = both(low, high, min), both(low, high, max)
            rulings = {no_worse(own, bottom), no_worse(top, own)}
            ruling = next((one for one in (Ruling.NOT_HELD, Ruling.UNDECIDED) if one in rulings), Ruling.HELD)
            verdicts.append(
                Verdict(
                    paper="FedMAP",
                    claim=f"sizes: {label}'s unseen size {unseen:g} is between {smaller:g} and {larger:g}",
                    published="between",
                    figures=f"{against(own, low)}; {against(own, high)}",
                    ruling=ruling,
                )
            )
    return verdicts


Counted = Callable[[Figures], Sequence[Verdict]]
COUNTED: Sequence[Counted] = (
    fedmrn_sends_a_twenty_sixth,
    perfedmask_trains_few_parameters,
    hermes_takes_fewer_bytes,
    hermes_keeps_different_channels,
    fedspa_sends_half,
    fedmap_has_every_size,
)
"""Claims about what is counted, or about more than two figures."""
