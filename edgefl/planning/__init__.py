"""Planning: from what a device can do to what it shall do.

prediction.py    what a submodel will take on a device
uniform.py       the widest uniform submodel that fits
"""

from edgefl.planning.prediction import predict
from edgefl.planning.uniform import widest

__all__ = ["predict", "widest"]
