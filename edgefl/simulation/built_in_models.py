"""Models that come already exported, so that simulating them needs no torch.

`models/NAME.zip` is the bundle of the zoo's model of that name; `python -m tests.export.test_built_in_models` writes
them anew.
"""

from importlib.resources import as_file, files

from edgefl.artifacts.bundle import Bundle, read_bundle

__all__ = ["BUILT_IN", "built_in_bundle"]

BUILT_IN = ("digits_cnn", "digits_mlp")


def built_in_bundle(name: str) -> Bundle:
    """Return the bundle of a built-in model."""
    with as_file(files("edgefl.simulation") / "models" / f"{name}.zip") as path:
        return read_bundle(path)
