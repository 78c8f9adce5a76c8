"""`python -m edgefl` runs the command line."""

import sys

from edgefl.cli.main import main

sys.exit(main())
