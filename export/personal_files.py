"""The files of one submodel, in every requested format.

`edgefl export` calls this with a bundle and a mask. ONNX files come from `edgefl.artifacts`, without torch; ExecuTorch
programs have fixed shapes and are compiled for this mask.

    train.onnx, weights.safetensors   to train with onnxruntime
    train.pte, train.json             to train with ExecuTorch, and the `Program` document that describes it
    infer.onnx, infer.pte             to predict
    infer.int8.onnx, infer.int8.pte   to predict with 8-bit integers
    mask.safetensors                  the mask
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from edgefl.artifacts.bundle import INFER, TRAIN, WEIGHTS, Bundle
from edgefl.artifacts.quantise import quantise
from edgefl.artifacts.submodel import SubmodelFiles, bundle_weights, make_submodel
from edgefl.masks import Array, Mask
from edgefl.values import ProgramRole, ProgramSpec, dumps
from edgefl.wire import encode_mask
from export.executorch import inference_program
from export.executorch.program import compile_program
from export.losses import Loss
from export.model_source import ModelSource

__all__ = ["FORMATS", "PersonalExport", "make_files", "training_spec"]

FORMATS = ("onnx", "executorch")


@dataclass(frozen=True, slots=True, eq=False)
class PersonalExport:
    """The request for the files of a submodel."""

    formats: tuple[str, ...] = ("onnx",)
    train: bool = True
    infer: bool = True
    batch: int = 32
    """Samples per training step, which an ExecuTorch program fixes."""
    calibration: Array | None = None
    """Real samples, if 8-bit models are requested too."""


def make_files(
    source: ModelSource,
    bundle: Bundle,
    mask: Mask,
    request: PersonalExport,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, bytes]:
    """Return the files of a mask's submodel by name."""
    files = {"mask.safetensors": encode_mask(mask)}
    if "onnx" in request.formats:
        progress("ONNX files")
        files |= dict(_onnx_files(make_submodel(bundle, mask), request))
    if "executorch" in request.formats:
        files |= dict(_executorch_files(source, bundle, mask, request, progress))
    return files


def _onnx_files(submodel: SubmodelFiles, request: PersonalExport) -> Iterator[tuple[str, bytes]]:
    if request.train:
        yield TRAIN, submodel.training_graph
        yield WEIGHTS, submodel.weights
    if request.infer:
        yield INFER, submodel.inference_model
    if request.calibration is not None:
        yield "infer.int8.onnx", quantise(submodel.inference_model, request.calibration)


def _executorch_files(
    source: ModelSource, bundle: Bundle, mask: Mask, request: PersonalExport, progress: Callable[[str], None]
) -> Iterator[tuple[str, bytes]]:
    weights = bundle_weights(bundle)
    if request.train:
        progress("ExecuTorch training program")
        spec = training_spec(bundle, mask, request.batch)
        program, pte = compile_program(
            source.model, source.example, bundle.graph, spec, loss=Loss(bundle.manifest.loss)
        )
        yield "train.pte", pte
        yield "train.json", (dumps(program, indent=2) + "\n").encode()
        yield WEIGHTS, make_submodel(bundle, mask).weights
    if request.infer:
        progress("ExecuTorch inference program")
        yield "infer.pte", inference_program(source.model, source.example, mask, weights).pte
    if request.calibration is not None:
        progress("ExecuTorch 8-bit program")
        samples = torch.from_numpy(np.array(request.calibration))
        yield "infer.int8.pte", inference_program(source.model, source.example, mask, weights, calibration=samples).pte


def training_spec(bundle: Bundle, mask: Mask, batch: int) -> ProgramSpec:
    """Return what to compile for the widths and the trained layers of one mask."""
    return ProgramSpec(
        role=ProgramRole.TRAIN,
        model=bundle.graph.digest,
        graph=bundle.manifest.files[TRAIN],
        widths=dict(mask.widths),
        trained=tuple(layer for layer in bundle.graph.trainable_layers if layer in mask.trained),
        batch_size=batch,
    )
