"""`tidegate simulate --like DEMO.json`: does the simulator tell the demo's story?

- `measured` reads the demo's JSON;
- `model` fits a service model to the curve of the demo's database, and to nothing else;
- `scenarios` turns each cell of the demo into a scenario, `predict` runs it;
- `figures` says when two figures differ, `causes` what the model does not know, `compare` puts it together;
- `show` and `html` show it, `figures_of` writes it.

Nothing here is imported by `import tidegate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from tidegate import _native
from tidegate._errors import ConfigError
from tidegate.report.origin import Origin
from tidegate.report.page import Page
from tidegate.simulate.like import html, show
from tidegate.simulate.like.compare import Comparison, compare
from tidegate.simulate.like.figures_of import figures_of
from tidegate.simulate.like.measured import LikeError, read

__all__ = ["Like", "LikeError", "like"]


@dataclass(frozen=True, slots=True)
class Like:
    """What `tidegate simulate --like` found."""

    comparison: Comparison

    @property
    def figures(self) -> object:
        """All of it, for programs."""
        return figures_of(self.comparison)

    def page(self, origin: Origin) -> Page:
        """All of it, with charts."""
        return html.as_page(self.comparison, origin)

    def show(self, console: Console) -> None:
        """Print it; the verdict is the last line."""
        show.show(console, self.comparison)


def like(path: Path, seed: int, folder: Path | None = None) -> Like:
    """Predict a demo's figures from what it measured of its database.

    Args:
        path: The demo's JSON.
        seed: Of the first run of each cell.
        folder: Where the scenarios are to be left; None: nowhere.

    Raises:
        LikeError: The file is no demo's JSON, no model is near its curve, or the folder cannot be written to.
    """
    try:
        demo = read(path.read_text(encoding="utf-8"))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            return Like(compare(demo, folder=folder, seed=seed, simulate=_native.simulate))
        with TemporaryDirectory(prefix="tidegate-like-") as temporary:
            return Like(compare(demo, folder=Path(temporary), seed=seed, simulate=_native.simulate))
    except LikeError as error:
        raise LikeError(f"{path}: {error}") from error
    except ConfigError as error:
        raise LikeError(f"{path}: curve: {error}") from error
    except UnicodeDecodeError as error:
        raise LikeError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise LikeError(f"{error.filename}: {error.strerror}") from error
