"""Make the demo's arrival trace from the original: `thin_trace.py AzureLLMInferenceTrace_conv.csv`.

Keeps the arrival times alone, as seconds since the first, and each of them with probability one half. (Drawn
at random: taking every second one would smooth the bursts.) Writes to standard output. Address, licence and
citation of the original are in python/tidegate/demo/data/README.md.
"""

import csv
import random
import sys
from datetime import datetime
from pathlib import Path

KEEP = 0.5


def main(original: Path) -> None:
    """Print the thinned trace."""
    rng = random.Random("thinned for the Tidegate demo")  # noqa: S311
    with original.open(encoding="utf-8-sig", newline="") as file:
        times = [datetime.fromisoformat(row["TIMESTAMP"]) for row in csv.DictReader(file)]
    print("seconds")
    for time in times:
        if rng.random() < KEEP:
            print(f"{(time - times[0]).total_seconds():.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
