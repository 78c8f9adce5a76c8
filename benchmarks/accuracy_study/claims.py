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
from benchmarks.accuracy_study.verdicts import NotRunError, Verdict, above, against, no_worse, points, size_points

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
    size: float | None = None
    """If extracted submodels of this size are compared."""
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
        if self.size is not None:
            return size_points(figures, setup, self.own, self.size), size_points(figures, setup, self.other, self.size)
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
        ):
            yield claim_of(claim=f"{name} is above {baseline}", other=other, published=f"{found} against {figure}")


def _perfedmask() -> Iterator[Comparison]:
    """Tables 1, 2 and 5: CIFAR-10 with all devices in every round, after fine-tuning."""
    claim_of = partial(Comparison, paper="PerFedMask", setups="freezing", own="perfedmask")
    for other, name, figure in (
        ("fedavg", "FedAvg", "84.99"),
        ("fedprox", "FedProx", "84.96"),
        ("fednova", "FedNova", "84.26"),
        ("heterofl", "HeteroFL", "87.33"),
    ):
        yield claim_of(
            claim=f"PerFedMask is above {name} after fine-tuning",
            other=other,
            measure="after",
            published=f"88.43 against {figure}",
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


def _fedmap() -> Iterator[Comparison]:
    """Table 1 and section 5.2, at 1/16 of the parameters."""
    for own, name in (("fedmap", "FedMAP"), ("fedmap channel top", "FedMAP with nested channels")):
        claim_of = partial(Comparison, paper="FedMAP", setups="sizes", own=own, size=0.0625)
        for other, baseline in (("heterofl", "HeteroFL"), ("fedrolex", "FedRolex")):
            yield claim_of(claim=f"{name}'s 1/16 submodel is above {baseline}'s", other=other)
        yield claim_of(
            claim=f"{name} is above itself without mask learning (not in the paper)", other=f"{own} unlearned"
        )


COMPARISONS: Sequence[Comparison] = (*_fedmrn(), *_perfedmask(), *_hermes(), *_fedspa(), *_fedmap())
"""Claims that compare two accuracn two figures."""


def judged(figures: Figures) -> list[Verdict]:
    """Return the verdicts on all claims whose methods were run, paper by paper."""
    verdicts = [verdict for comparison in COMPARISONS for verdict in comparison.verdicts(figures)]
    for claim in COUNTED:
        try:
            verdicts.extend(claim(figures))
        except NotRunError:
            continue
    return sorted(verdicts, key=lambda verdict: PAPERS.index(verdict.paper))
