"""The tests of the edges use what the tests of the gate use, too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "gate"))  # for gatekit
