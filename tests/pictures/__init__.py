"""The pictures of the documentation, made from fixed sweeps; `python -m tests.pictures` draws all of them anew."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
