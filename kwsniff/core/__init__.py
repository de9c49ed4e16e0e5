"""The compiled core: capture bytes in, tapes and columns out.

All modules are in one shared object beside this file, which setup.py builds. It has a seventh of the size of
one file per module, and loads somewhat faster.
"""

import os.path
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from types import ModuleType

_FOLDER = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes longer than all else here
_PREFIX = f"{__name__}."


class _InSharedObject:
    """Finds modules by their names and texts: `kwsniff.core.tcp.streams` is that of tcp/streams.pyx.

    Source: Python's manual, "Defining extension modules", multiple modules in one library.
    """

    def __init__(self, shared_object: str) -> None:
        self._file = shared_object

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        text = f"{_FOLDER}/{name.removeprefix(_PREFIX).replace('.', '/')}.pyx"
        if not os.path.isfile(text):  # noqa: PTH113
            return None
        spec = ModuleSpec(name, ExtensionFileLoader(name, self._file), origin=self._file)
        spec.has_location = True
        return spec


for _suffix in EXTENSION_SUFFIXES:
    if os.path.isfile(_file := f"{_FOLDER}/modules{_suffix}"):  # noqa: PTH113
        sys.meta_path.insert(0, _InSharedObject(_file))
        break
