"""Compressors of updates after training: the baselines that FedMRN was compared with (its section 5.1.3), and one more.

compressor.py   the seam, and what all compressors share
signs.py        one bit an entry: stochastic and scaled signs
terngrad.py     three levels
top_k.py        the largest entries
random_subsample.py
                random entries
rotated.py      one bit an entry after a random rotation: DRIVE and EDEN
hadamard.py     the rotation
"""

from edgefl.local_rules.compression.compressor import Compressor
from edgefl.local_rules.compression.random_subsample import RandomSubsample
from edgefl.local_rules.compression.rotated import Drive, Eden
from edgefl.local_rules.compression.signs import ScaledSign, SignScale, StochasticSign
from edgefl.local_rules.compression.terngrad import TernGrad
from edgefl.local_rules.compression.top_k import TopK

__all__ = [
    "Compressor",
    "Drive",
    "Eden",
    "RandomSubsample",
    "ScaledSign",
    "SignScale",
    "StochasticSign",
    "TernGrad",
    "TopK",
]
