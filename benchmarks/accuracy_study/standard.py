"""The standard study: CIFAR-10 and Fashion-MNIST, rates tuned for every method, at most two hours on two cores.

Sizes are a compromise. All 10,000 test images are used, so that an accuracy has a standard error of half a point at
most; images are half as large as published, networks have 25,000 to 80,000 parameters, and fleets 10 to 30 devices, so
that a run takes about half a minute. What differs by less than the interval beside it is undecided.
"""

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.accuracy_study.setups import FEDMAP_SIZES, FEDSPA, PERFEDMASK, QUICK, Setup, by_name

__all__ = ["STANDARD"]

_RATES = (0.01, 0.03, 0.1)

_FREEZING = Setup(
    name="freezing",
    settings=PERFEDMASK,
    about="PerFedMask, Table 1: CIFAR-10, 3 labels a device, all in every round, half of them can train an eighth",
    data="cifar10-16",
    train=4000,
    model="cnn4_colour_16",
    scheme="labels:3",
    clients=20,
    per_round=20,
    rounds=25,
    epochs=2,
    batch=25,
    capacities=(1.0, 0.125),
    rates=_RATES,
    judged_by="after",
    seeds=4,
)

STANDARD: Mapping[str, Setup] = by_name(
    QUICK["bytes"],
    Setup(
        name="uplink",
        settings={"momentum": 0.0},
        about="FedMRN, Table 1: Dirichlet 0.3, 10 devices in every round, CNN4 less a block at half its widths",
        data="fashion-mnist-14",
        train=2000,
        model="cnn3_batch_14",
        scheme="dirichlet:0.3",
        clients=10,
        per_round=10,
        rounds=60,
        epochs=2,
        batch=10,
        rates=(0.03, 0.1, 0.3),
        seeds=5,
    ),
    _FREEZING,
    replace(
        _FREEZING,
        name="freezing-own",
        about="the same where weak devices have five classes to themselves, and strong ones the others",
        scheme="iid",
        own_classes=True,
        rates=(0.03, 0.1),
    ),
    Setup(
        name="channels",
        settings={"fine_tune_epochs": 0, "momentum": 0.0},
        about="Hermes, Figure 7: CIFAR-10, 2 labels a device, 10 of 30 devices in a round, pruning to 30 %",
        data="cifar10-16",
        train=6000,
        model="cnn4_colour_16",
        scheme="labels:2",
        clients=30,
        per_round=10,
        rounds=36,
        epochs=2,
        batch=16,
        rates=_RATES,
        judged_by="after",
        seeds=4,
    ),
    Setup(
        name="weights",
        settings={name: value for name, value in FEDSPA.items() if name != "learning_rate"},
        about="FedSpa, Table 1: LeNet5, Dirichlet 0.1, density 0.5",
        data="fashion-mnist",
        train=3000,
        model="lenet5",
        scheme="dirichlet:0.1",
        clients=30,
        per_round=6,
        rounds=50,
        epochs=2,
        batch=20,
        rates=_RATES,
        judged_by="before",
        seeds=4,
    ),
    Setup(
        name="sizes",
        settings={"momentum": 0.0, "weight_decay": 0.0, "schedule": "constant"},
        about="FedMAP, Table 1: CIFAR-10, Dirichlet 0.3, devices of 1, 1/4, 1/16 and 1/64",
        data="cifar10-16",
        train=6000,
        model="cnn4_colour_16",
        scheme="dirichlet:0.3",
        clients=40,
        per_round=8,
        rounds=40,
        epochs=2,
        batch=32,
        capacities=(1.0, 0.25, 0.0625, 0.015625),
        sizes=FEDMAP_SIZES,
        rates=(0.03, 0.1),
        seeds=4,
    ),
)
"""The standard study, by name."""
