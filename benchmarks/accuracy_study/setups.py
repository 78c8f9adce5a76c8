"""What a comparison is made on. Quick ones fit a quarter of an hour on two cores; full ones are the papers' own.

What a quick set-up shows is for that set-up. FedMRN, whose masks settle within a round, needs rounds of many steps:
with 8 or 16 of them in place of 56 it was 1.5 to 3.5 points below FedAvg (one seed). Training alone is hard to beat on
two classes of small images. Claims that do not hold in a small set-up are printed so; the full one is the test.

CIFAR-10 comes with `python -m benchmarks.fetch_cifar10`; set-ups on it are left out where it is missing. Where the data
of a paper cannot be had (EMNIST, CIFAR-100, CINIC-10), the full set-up has the paper's rounds, devices and training on
Fashion-MNIST.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edgefl.values import Setting

__all__ = ["FEDMAP_SIZES", "FEDSPA", "FULL", "PERFEDMASK", "QUICK", "Setup", "by_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Data, devices and rounds, the same for all that are compared."""

    name: str
    about: str
    data: str
    train: int | None = None
    """Training samples that are used; None is all."""
    test: int | None = None
    model: str
    scheme: str
    clients: int
    per_round: int
    rounds: int
    epochs: int
    batch: int
    matched: int = 100
    """Published test samples that each device is judged by, with the labels that it has."""
    capacities: tuple[float, ...] = (1.0,)
    """Kinds of devices, equally many of each: what share of the whole each can do. Entries say of what."""
    own_classes: bool = False
    """Whether each kind of devices has classes of its own, as many as the others."""
    evaluate_every: int = 5
    sizes: tuple[float, ...] = ()
    """Shares of the parameters of the submodels that are judged in the end."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What all strategies are told that know such a setting. What no paper gives was tuned once, for FedAvg."""
    rates: tuple[float, ...] = ()
    """Learning rates that every method is tuned over (`tuning.py`); empty: nothing is tuned."""
    judged_by: str = "accuracy"
    """The measure that tuning is for. A set-up with `sizes` is judged by the mean accuracy of its submodels."""
    seeds: int = 3
    """The number of seeds that are reported."""


def by_name(*setups: Setup) -> Mapping[str, Setup]:
    """Return set-ups by their names."""
    return {setup.name: setup for setup in setups}


_TABLE_1 = "FedMRN, Table 1: Fashion-MNIST"
FEDSPA: Mapping[str, Setting] = {
    "momentum": 0.0,
    "learning_rate": 0.1,
    "weight_decay": 5e-4,
    "schedule": "exponential",
    "decay_factor": 0.998,
}
PERFEDMASK: Mapping[str, Setting] = {
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "schedule": "step_decay",
    "decay_at": "0.5, 0.75",
    "fine_tune_epochs": 5,
}
FEDMAP_SIZES = (1.0, 0.25, 0.125, 0.0625, 0.03125, 0.015625)

QUICK = by_name(
    Setup(
        name="digits",
        about="every strategy, Dirichlet 0.3",
        data="digits",
        model="mlp2",
        scheme="dirichlet:0.3",
        clients=20,
        per_round=10,
        rounds=40,
        epochs=3,
        batch=16,
        matched=30,
    ),
    Setup(
        name="bytes",
        settings={"learning_rate": 0.03},
        about="bytes of CNN4, one round",
        data="fashion-mnist",
        train=400,
        test=100,
        model="cnn4",
        scheme="iid",
        clients=2,
        per_round=2,
        rounds=1,
        epochs=1,
        batch=64,
        matched=10,
    ),
    Setup(
        name="uplink-small",
        settings={"learning_rate": 0.03},
        about="FedMRN's comparison: Dirichlet 0.3, CNN4 without its last block at half its widths, images of 8x8",
        data="fashion-mnist-8",
        train=3000,
        test=1000,
        model="cnn3_batch",
        scheme="dirichlet:0.3",
        clients=30,
        per_round=5,
        rounds=30,
        epochs=8,
        batch=16,
    ),
    Setup(
        name="freezing",
        settings={"learning_rate": 0.02, **PERFEDMASK, "schedule": "constant"},
        about="PerFedMask's comparison: 3 labels a device, all in every round, half of them can train a fifth",
        data="fashion-mnist-8",
        train=2000,
        test=1000,
        model="mlp6",
        scheme="labels:3",
        clients=20,
        per_round=20,
        rounds=20,
        epochs=4,
        batch=10,
        capacities=(1.0, 0.2),
    ),
    Setup(
        name="channels",
        settings={"learning_rate": 0.05, "momentum": 0.0},
        about="Hermes' comparison: 2 labels a device, a perceptron",
        data="fashion-mnist-8",
        train=2000,
        test=1000,
        model="mlp3",
        scheme="labels:2",
        clients=20,
        per_round=10,
        rounds=40,
        epochs=5,
        batch=16,
    ),
    Setup(
        name="weights",
        settings=FEDSPA,
        about="FedSpa's comparison: Dirichlet 0.1, a perceptron",
        data="fashion-mnist-8",
        train=3000,
        test=1000,
        model="mlp3",
        scheme="dirichlet:0.1",
        clients=30,
        per_round=6,
        rounds=60,
        epochs=5,
        batch=32,
    ),
    Setup(
        name="sizes",
        settings={"learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0, "schedule": "constant"},
        about="FedMAP's comparison: Dirichlet 0.3, devices of 1, 1/4, 1/16 and 1/64",
        data="fashion-mnist-8",
        train=3000,
        test=1000,
        model="cnn3_group",
        scheme="dirichlet:0.3",
        clients=40,
        per_round=8,
        rounds=60,
        epochs=3,
        batch=32,
        capacities=(1.0, 0.25, 0.0625, 0.015625),
        sizes=FEDMAP_SIZES,
    ),
)
"""The quick study, by name."""

_FEDMRN_TABLE = Setup(
    name="uplink",
    settings={"learning_rate": 0.03},
    about=f"{_TABLE_1}, non-IID 1 (Dirichlet 0.3)",
    data="fashion-mnist",
    model="cnn4",
    scheme="dirichlet:0.3",
    clients=100,
    per_round=10,
    rounds=100,
    epochs=10,
    batch=64,
)

FULL = by_name(
    QUICK["digits"],
    _FEDMRN_TABLE,
    replace(_FEDMRN_TABLE, name="uplink-labels", about=f"{_TABLE_1}, non-IID 2 (3 labels a device)", scheme="labels:3"),
    replace(_FEDMRN_TABLE, name="uplink-iid", about=f"{_TABLE_1}, IID", scheme="iid"),
    Setup(
        name="freezing",
        settings={"learning_rate": 0.1, **PERFEDMASK},
        about="PerFedMask, Table 1: CIFAR-10, PreResNet18, c = 1, 80 rounds of 4 epochs",
        data="cifar10",
        model="preresnet18",
        scheme="labels:3",
        clients=100,
        per_round=100,
        rounds=80,
        epochs=4,
        batch=50,
        capacities=(1.0, 0.125),
    ),
    Setup(
        name="channels",
        settings={"learning_rate": 0.05, "momentum": 0.0},
        about="Hermes, Figure 7: CIFAR-10, 2 labels a device, 20 devices a round; CNN4 for VGG16 (537 MB a device)",
        data="cifar10",
        train=20000,
        model="cnn4_colour",
        scheme="labels:2",
        clients=400,
        per_round=20,
        rounds=100,
        epochs=5,
        batch=16,
    ),
    Setup(
        name="weights",
        settings=FEDSPA,
        about="FedSpa, Table 1: LeNet5, Dirichlet 0.1",
        data="fashion-mnist",
        model="lenet5",
        scheme="dirichlet:0.1",
        clients=100,
        per_round=10,
        rounds=500,
        epochs=5,
        batch=128,
        evaluate_every=25,
    ),
    Setup(
        name="sizes",
        settings={"learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0, "schedule": "constant"},
        about="FedMAP, Table 1: Dirichlet 0.3, 1000 rounds",
        data="fashion-mnist",
        model="cnn4_group",
        scheme="dirichlet:0.3",
        clients=100,
        per_round=10,
        rounds=1000,
        epochs=1,
        batch=32,
        capacities=(1.0, 0.25, 0.0625, 0.015625),
        evaluate_every=50,
        sizes=FEDMAP_SIZES,
    ),
)
"""The full study, by name."""
