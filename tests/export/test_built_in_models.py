"""The models that `edgefl simulate` brings along are what the exporter makes of the zoo's.

`python -m tests.export.test_built_in_models` writes them anew.
"""

from pathlib import Path

import pytest

import edgefl.simulation
from edgefl.artifacts.bundle import Bundle, write_bundle
from edgefl.simulation.built_in_models import BUILT_IN, built_in_bundle
from export.bundle import make_bundle
from export.model_source import open_source
from export.zoo import block_of


def exported(name: str) -> Bundle:
    source = open_source(name)
    return make_bundle(source.model, source.name, source.example, block_of=block_of)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_model_is_up_to_date(name: str) -> None:
    assert exported(name).manifest.files == built_in_bundle(name).manifest.files


if __name__ == "__main__":
    for each in BUILT_IN:
        write_bundle(exported(each), Path(edgefl.simulation.__file__).parent / "models" / f"{each}.zip")
