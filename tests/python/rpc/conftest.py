"""The tests of the gRPC interceptors share the gate's test kit."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "gate"))  # for gatekit
