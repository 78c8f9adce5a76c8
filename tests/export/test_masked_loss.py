"""HeteroFL's masked loss on a device: classes that it has no sample of are left out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.trainer import Trainer, TrainingTask
from edgefl.artifacts.bundle import INFER
from edgefl.artifacts.submodel import bundle_weights, make_submodel
from edgefl.data import Dataset, Samples
from edgefl.masks import full_mask
from edgefl.values import digest_of
from export.bundle import make_bundle
from export.losses import Loss
from export.parity import check_parity
from export.zoo.seeding import seeded
from tests.device_runtime.federation import digits, plan_of
from tests.export.test_small_cnn import small_cnn


def test_rows_of_the_head_for_other_classes_are_not_trained(tmp_path: Path) -> None:
    with seeded(0):
        model = small_cnn()
    bundle = make_bundle(model, "masked", torch.zeros(2, 1, 8, 8), loss=Loss.MASKED_CROSS_ENTROPY)
    assert check_parity(model, bundle.files["train.onnx"], torch.zeros(2, 1, 8, 8)).holds
    whole = digits()
    few = np.flatnonzero(whole.train.labels < 2)
    train = Samples(whole.train.features[few], whole.train.labels[few])
    data = LocalData.whole(Dataset("two", train, train, 2, normalisation=whole.normalisation))
    mask = full_mask(bundle.graph)
    submodel, weights = make_submodel(bundle, mask), bundle_weights(bundle)
    plan = replace(plan_of(mask), graph=digest_of(submodel.training_graph))
    engine = open_engine("onnx", ThreadSettings(1))
    trainer = Trainer(engine, data, tmp_path, threads=1, device_id="pi-1")
    after = trainer.run(TrainingTask(plan, mask, weights, submodel.training_graph, bundle.files[INFER])).weights
    changed = np.any(after["9.weight"] != weights["9.weight"], axis=1)
    assert changed.tolist() == [True, True] + 8 * [False]
    assert after["9.bias"][:2].tolist() != weights["9.bias"][:2].tolist()
