"""The built-in models that a device is measured with if no bundle is given: three kinds of network, ready to train.

They are in `graphs/`, each a bundle without weights: a convolutional network, a residual one and a perceptron of the
zoo, whole and cut, so that a device without the onnx package can measure cuts too. `train.NAME.onnx` is the training
graph of the block NAME and all after it. `python -m tests.export.test_reference_graphs` writes them again.
"""

from importlib.resources import as_file, files

from edgefl.artifacts.bundle import Bundle, read_bundle

__all__ = ["MODELS", "reference_bundles"]

MODELS = ("cnn4", "preresnet18", "mlp")


def reference_bundles() -> list[Bundle]:
    """Read the built-in models."""
    return [_read(model) for model in MODELS]


def _read(model: str) -> Bundle:
    with as_file(files("device_runtime.profiler") / "graphs" / f"{model}.zip") as path:
        return read_bundle(path)
