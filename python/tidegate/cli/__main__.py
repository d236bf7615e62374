"""`python -m tidegate.cli`: the `tidegate` command without its script."""

import sys

from tidegate.cli import main

if __name__ == "__main__":
    sys.exit(main())
