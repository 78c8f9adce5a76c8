"""`python -m edgefl` is `edgefl`."""

import sys

from edgefl.cli.main import main

sys.exit(main())
