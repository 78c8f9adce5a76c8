"""Data sets and how they are divided among clients.

`load` reads a known set or your own .npz, `partition` deals its training samples to clients (IID, Dirichlet,
few labels, by owner, two classes), `split_clients` and `matched_test` give every client its own validation
and test samples, and `text_picture` and `save_plot` show the result. numpy is all this room needs; the file
of the default set comes with scikit-learn, which is never imported.
"""

from edgefl.data.catalogue import CatalogueEntry, catalogue, load
from edgefl.data.dataset import Dataset, some_samples
from edgefl.data.normalisation import Normalisation
from edgefl.data.partition_plot import plot_format, save_plot
from edgefl.data.partition_text import text_picture
from edgefl.data.partitions import SCHEMES, Partition, Scheme, parse_scheme, partition
from edgefl.data.samples import Samples
from edgefl.data.splits import ClientSplit, matched_test, split_clients

__all__ = [
    "some_samples",
    "Samples",
    "Dataset",
    "Normalisation",
    "load",
    "catalogue",
    "CatalogueEntry",
    "partition",
    "Partition",
    "Scheme",
    "SCHEMES",
    "parse_scheme",
    "split_clients",
    "ClientSplit",
    "matched_test",
    "text_picture",
    "save_plot",
    "plot_format",
]
