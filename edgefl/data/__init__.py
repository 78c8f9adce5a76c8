"""Data sets and how they are divided among clients.

`load` reads a known data set or your own .npz, `partition` divides its training samples among clients, `split_clients`
and `matched_test` give every client its own validation and test samples, and `text_picture` and `save_plot` show the
result. This package needs only numpy; the file of the default data set comes with scikit-learn, which is never
imported.

samples.py         features, labels and owners of samples
normalisation.py   from raw features to float32
dataset.py         a data set: training and test samples
sample_check.py    whether a data set has the samples that a federation describes
archives.py        reading files, folders and archives
sources.py         where a known data set is looked for
formats/           the published file formats
catalogue.py       the known data sets, by name
schemes/           ways to divide samples among clients
partitions.py      which client has which training samples
splits.py          validation and test samples of each client
partition_text.py  a partition as text for the terminal
partition_plot.py  a partition as a plot
"""

from edgefl.data.catalogue import CatalogueEntry, catalogue, load
from edgefl.data.dataset import Dataset, some_samples
from edgefl.data.normalisation import Normalisation
from edgefl.data.partition_plot import plot_format, save_plot
from edgefl.data.partition_text import text_picture
from edgefl.data.partitions import SCHEMES, Partition, Scheme, parse_scheme, partition
from edgefl.data.sample_check import described_by, fitting, plain_sample
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
    "plain_sample",
    "described_by",
    "fitting",
]
