"""Compressors of updates after training: the baselines of FedMRN (its section 5.1.3), and random subsampling.

compressor.py        the interface, and what all compressors share
signs.py             one bit per entry: stochastic and scaled signs
terngrad.py          three levels
top_k.py             the largest entries
random_subsample.py  random entries
rotated.py           one bit per entry after a random rotation: DRIVE and EDEN
hadamard.py          the rotation
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
