"""The document that names a task's tensors: from a mask and what a rule sends of it to a `Submodel`.

Dispatch makes it for every task. It and the checks of updates have one source, `LocalRule.sends`.
"""

from collections.abc import Mapping

from edgefl.masks import Mask
from edgefl.values import SentPayload, Submodel, SubmodelTensor
from edgefl.wire import Expected

__all__ = ["submodel_document"]


def submodel_document(mask: Mask, sent: Mapping[str, Expected]) -> Submodel:
    """Return the tensors of a submodel of which `mask.trained` is trained, and whose update holds `sent`, by name."""
    trained = set(mask.trained_tensors)
    tensors = tuple(
        SubmodelTensor(
            name=tensor.name,
            shape=mask.shapes[tensor.name],
            dtype=tensor.dtype.value,
            role=tensor.role.value,
            layer=mask.graph.layer_of[tensor.name],
            trained=tensor.name in trained,
            sent=sent[tensor.name].codec if tensor.name in sent else None,
        )
        for tensor in mask.graph.tensors
    )
    own = {tensor.name: tensor for tensor in tensors}
    payloads = tuple(
        SentPayload(name=name, shape=form.shape, codec=form.codec or "dense", dtype=form.dtype)
        for name, form in sent.items()
        if name not in own or form.shape != own[name].shape or form.dtype not in (None, own[name].dtype)
    )
    return Submodel(tensors=tensors, payloads=payloads)
