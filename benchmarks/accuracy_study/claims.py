"""The claims of the papers' tables, each judged by the figures of a set-up.

Most claims say that one method is above another, or close to it: those are comparisons. `counted_claims.py` has the
others. A claim whose methods were not run is left out. The published figures are the paper's own, on its own data and
models, so what should carry over is the order, not the numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.accuracy_study.counted_claims import COUNTED
from benchmarks.accuracy_study.figures import Figures, Value
from benchmarks.accuracy_study.verdicts import NotRunError, Verdict, above, against, no_worse, points, series_points

__all__ = ["COMPARISONS", "Comparison", "judged"]

PAPERS = ("FedMRN", "PerFedMask", "Hermes", "FedSpa", "FedMAP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A claim that one method is above another, or at most some points below it."""

    paper: str
    claim: str
    setups: str
    """The first letters of the set-ups that it is judged on."""
    own: str
    other: str
    published: str = "-"
    measure: str = "accuracy"
    other_measure: str = ""
    """If the other method is judged by something else."""
    series: str = ""
    """If accuracies of a series are compared, such as those of extracted submodels by size."""
    place: float = 0.0
    """Where in the series."""
    other_series: str = ""
    other_place: float | None = None
    """Where the other one is, if it is not at the same place of the same series."""
    margin: float | None = None
    """Points by which it may be below; None: it must be above."""

    def verdicts(self, figures: Figures) -> Iterator[Verdict]:
        """Judge the claim on every set-up that has both methods."""
        for setup in dict.fromkeys(name for name, _ in figures if name.startswith(self.setups)):
            try:
                own, other = self._values(figures, setup)
                ruling = above(own, other) if self.margin is None else no_worse(own, other, self.margin)
                found = against(own, other)
            except NotRunError:
                continue
            claim = f"{setup}: {self.claim}"
            yield Verdict(paper=self.paper, claim=claim, published=self.published, figures=found, ruling=ruling)

    def _values(self, figures: Figures, setup: str) -> tuple[Value, Value]:
        if self.series:
            place = self.place if self.other_place is None else self.other_place
            return (
                series_points(figures, setup, self.own, self.series, self.place),
                series_points(figures, setup, self.other, self.other_series or self.series, place),
            )
        other = points(figures, setup, self.other, self.other_measure or self.measure)
        return points(figures, setup, self.own, self.measure), other


def _fedmrn() -> Iterator[Comparison]:
    """Table 1, Fashion-MNIST, non-IID 1."""
    for own, name, found in (("fedmrn", "FedMRN", "90.2"), ("fedmrn signed", "signed FedMRN", "90.5")):
        claim_of = partial(Comparison, paper="FedMRN", setups="uplink", own=own)
        yield claim_of(
            claim=f"{name} is within 1 point of FedAvg",
            other="fedavg",
            published=f"{found} against 90.5",
            margin=1.0,
        )
        for other, baseline, figure in (
            ("signsgd", "signSGD", "88.4"),
            ("topk", "Top-k", "88.6"),
            ("terngrad", "TernGrad", "89.9"),
            ("drive", "DRIVE", "89.9"),
            ("eden", "EDEN", "89.8"),
            ("fedpm", "FedPM", "78.6"),
            ("fedsparsify", "FedSparsify", "80.9"),
        ):
            yield claim_of(claim=f"{name} is above {baseline}", other=other, published=f"{found} against {figure}")
    yield from _fedmrn_parts()


def _fedmrn_parts() -> Iterator[Comparison]:
    """Figures 4 and 5: what progressive stochastic masking is worth, and that the form of the noise matters little."""
    claim_of = partial(Comparison, paper="FedMRN", setups="uplink", published="a figure without numbers")
    for label, missing in (
        ("fedmrn progressive", "stochastic masks"),
        ("fedmrn stochastic", "progressive masking"),
        ("fedmrn deterministic", "both"),
    ):
        yield claim_of(claim=f"FedMRN is above itself without {missing}", own="fedmrn", other=label)
    yield claim_of(
        claim="FedMRN without stochastic and progressive masking, at its settings, is above signSGD",
        own="fedmrn deterministic",
        other="signsgd",
    )
    for noise in ("gaussian", "bernoulli"):
        yield claim_of(
            claim=f"{noise.capitalize()} noise is within 1 point of uniform noise",
            own=f"fedmrn {noise}",
            other="fedmrn",
            margin=1.0,
        )


def _perfedmask() -> Iterator[Comparison]:
    """Tables 1, 2 and 5: CIFAR-10 with all devices in every round, after fine-tuning."""
    claim_of = partial(Comparison, paper="PerFedMask", setups="freezing", own="perfedmask")
    for other, name, figure in (
        ("fedavg", "FedAvg", "84.99"),
        ("fedprox", "FedProx", "84.96"),
        ("fednova", "FedNova", "84.26"),
        ("heterofl", "HeteroFL", "87.33"),
        ("split_mix", "Split-Mix", "85.56"),
    ):
        yield claim_of(
            claim=f"PerFedMask is above {name} after fine-tuning",
            other=other,
            measure="after",
            published=f"88.43 against {figure}",
        )
    for label, name in (("fedavg equal bytes", "its bytes"), ("fedavg equal work", "its multiply-adds")):
        yield claim_of(
            claim=f"PerFedMask is above FedAvg with as many rounds as take {name} (not in the paper)",
            other=label,
            measure="after",
        )
    yield claim_of(
        claim="PerFedMask is within 1 point of FedBABU",
        other="fedbabu",
        measure="after",
        margin=1.0,
        published="88.43 against 88.20",
    )
    yield claim_of(
        claim="optimised masks are above random ones before fine-tuning",
        other="perfedmask random",
        measure="before",
        published="29.84 against 28.88 (CIFAR-100)",
    )
    yield from _perfedmask_tables()


def _perfedmask_tables() -> Iterator[Comparison]:
    """Table 2 (combinations), Table 3 (epochs of fine-tuning) and Table 4 (how many devices are strong)."""
    claim_of = partial(Comparison, paper="PerFedMask", setups="freezing")
    yield claim_of(
        claim="PerFedMask with HeteroFL is above HeteroFL alone after fine-tuning",
        own="perfedmask heterofl",
        other="heterofl",
        measure="after",
        published="87.79 against 87.33",
    )
    yield claim_of(
        claim="PerFedMask with Split-Mix is above Split-Mix alone after fine-tuning",
        own="split_mix perfedmask",
        other="split_mix",
        measure="after",
        published="87.74 against 85.56",
    )
    for own, name, figures in (("perfedmask", "PerFedMask", "88.78"), ("fedbabu", "FedBABU", "88.63")):
        yield claim_of(
            claim=f"{name} needs no more than 2 epochs of fine-tuning: within 1 point of 10",
            own=own,
            other=own,
            series="fine-tuned",
            place=2,
            other_place=10,
            margin=1.0,
            published=f"{figures} against {'88.30' if own == 'perfedmask' else '87.92'}",
        )
    yield claim_of(
        claim="PerFedMask is better before fine-tuning if all devices are strong than if a fifth are",
        own="perfedmask all strong",
        other="perfedmask fifth strong",
        measure="before",
        published="34.73 against 29.29 (CIFAR-100)",
    )
    yield claim_of(
        claim="with a fifth of strong devices, PerFedMask is within 2 points of all strong after fine-tuning",
        own="perfedmask fifth strong",
        other="perfedmask all strong",
        measure="after",
        margin=2.0,
        published="72.07 against 73.76 (CIFAR-100)",
    )


def _hermes() -> Iterator[Comparison]:
    """Figure 7: devices' own samples; FedAvg's devices predict with the global model, as in the paper."""
    for setups in ("channels", "digits"):
        claim_of = partial(Comparison, paper="Hermes", setups=setups, own="hermes", measure="after")
        yield claim_of(
            claim="Hermes' personal models are above FedAvg's global one",
            other="fedavg",
            other_measure="before",
        )
        yield claim_of(claim="Hermes' personal models are above training alone", other="local")
        for other, name, better in (
            ("lg_fedavg", "LG-FedAvg", "8.93"),
            ("per_fedavg", "Per-FedAvg", "12.55"),
            ("topk", "Top-k", "32.17"),
        ):
            yield claim_of(
                claim=f"Hermes' personal models are above those of {name}",
                other=other,
                other_measure="before" if other == "topk" else "after",
                published=f"+{better} (CIFAR-10)" if setups == "channels" else "-",
            )
    for kept, published in (("half", "85.91"), ("four fifths", "86.35")):
        yield Comparison(
            paper="Hermes",
            claim=f"pruning to 30 % is within 1 point of pruning to {kept}",
            setups="channels",
            own="hermes",
            other=f"hermes {kept}",
            measure="after",
            margin=1.0,
            published=f"85.72 against {published}",
        )
    yield Comparison(
        paper="Hermes",
        claim="pruning by sensitivity is no worse than by magnitude (not in the paper)",
        setups="channels",
        own="hermes",
        other="hermes magnitude",
        measure="after",
        margin=1.0,
    )


def _fedspa() -> Iterator[Comparison]:
    """Table 1, LeNet on EMNIST-L, setting B: a device's model is its mask of the global one."""
    claim_of = partial(Comparison, paper="FedSpa", setups="weights", own="fedspa")
    for other, name, figure, measure in (
        ("fedavg", "FedAvg", "90.9", "before"),
        ("fedspa static", "one static mask (RSM)", "90.6", "before"),
        ("ditto", "Ditto", "97.0", "after"),
        ("local", "training alone", "91.6", "after"),
        ("sub_fedavg", "Sub-FedAvg", "96.4", "after"),
        ("random_subsampling", "Subsampling", "91.3", "before"),
    ):
        yield claim_of(
            claim=f"FedSpa is above {name}",
            other=other,
            measure="before",
            other_measure=measure,
            published=f"96.5 against {figure}",
        )
    yield claim_of(
        claim="FedSpa is above FedAvg after a device trained both (not in the paper)",
        other="fedavg",
        measure="after",
    )
    for other, density, figures in (
        ("fedspa 0.8", "0.8", "66.9 against 65.5"),
        ("fedspa 0.2", "0.2", "66.9 against 56.7"),
    ):
        yield claim_of(
            claim=f"FedSpa is better with density 0.5 than with {density}",
            other=other,
            measure="before",
            published=f"{figures} (CIFAR-100)",
        )


def _fedmap() -> Iterator[Comparison]:
    """Table 1 and section 5.2, at 1/16 of the parameters."""
    for own, name in (("fedmap", "FedMAP"), ("fedmap channel top", "FedMAP with nested channels")):
        claim_of = partial(Comparison, paper="FedMAP", setups="sizes", own=own, series="size", place=0.0625)
        for other, baseline in (("heterofl", "HeteroFL"), ("fedrolex", "FedRolex")):
            yield claim_of(claim=f"{name}'s 1/16 submodel is above {baseline}'s", other=other)
        yield claim_of(
            claim=f"{name} is above itself without mask learning (not in the paper)", other=f"{own} unlearned"
        )

    for size in (0.25, 0.0625):
        yield Comparison(
            paper="FedMAP",
            claim=f"FedMAP's submodel of {size:g} with the highest probabilities is above a drawn one",
            setups="sizes",
            own="fedmap",
            other="fedmap",
            series="size",
            other_series="size, drawn",
            place=size,
            published="a figure without numbers",
        )


COMPARISONS: Sequence[Comparison] = (*_fedmrn(), *_perfedmask(), *_hermes(), *_fedspa(), *_fedmap())
"""Claims that compare two accuracies."""


def judged(figures: Figures) -> list[Verdict]:
    """Return the verdicts on all claims whose methods were run, paper by paper."""
    verdicts = [verdict for comparison in COMPARISONS for verdict in comparison.verdicts(figures)]
    for claim in COUNTED:
        try:
            verdicts.extend(claim(figures))
        except NotRunError:
            continue
    return sorted(verdicts, key=lambda verdict: PAPERS.index(verdict.paper))
