"""The folder of the dissectors' texts."""

from importlib import import_module
from pathlib import Path


def dissectors_folder() -> Path:
    """The folder `dissectors`: in the package if installed, next to its folder in a clone.

    Raises ModuleNotFoundError if there is none.
    """
    try:
        package = import_module("kwsniff.dissectors")
    except ModuleNotFoundError:
        beside = Path(__file__).parents[2] / "dissectors"
        if not beside.is_dir():
            raise
        return beside
    return Path(next(iter(package.__path__)))
