"""onnxruntime that loads each graph once: a thousand simulated devices share a few graphs.

Only one task runs at a time in a worker, so that sessions and their memory can be shared.
"""

from typing import Any

from device_runtime.engines import ThreadSettings
from device_runtime.engines.onnx import OnnxEngine, OnnxPredictor, OnnxStep, check_graph_alone, open_session
from edgefl.federation.cache import LruCache
from edgefl.local_rules import trained_parameters
from edgefl.masks import Array, Mask
from edgefl.values import Program

__all__ = ["CachedEngine"]

_ONE = ThreadSettings(1)
_KEPT = 64


class CachedEngine(OnnxEngine):
    """The device's engine on one thread, with a cache of loaded graphs."""

    def __init__(self) -> None:
        super().__init__(_ONE)
        self._sessions: LruCache[bytes, Any] = LruCache(_KEPT)

    def train_step(
        self, graph: bytes, mask: Mask, *, labels: Array | None = None, program: Program | None = None
    ) -> OnnxStep:
        """Return the step of a training graph that is already cut for what the mask trains."""
        check_graph_alone(program)
        return OnnxStep(self._session(graph), trained_parameters(mask), labels)

    def predictor(self, model: bytes, *, program: Program | None = None) -> OnnxPredictor:
        """Return a model to predict with."""
        check_graph_alone(program)
        return OnnxPredictor(self._session(model))

    def _session(self, graph: bytes) -> Any:
        return self._sessions.get(graph, lambda: open_session(graph, self.threads))
