"""What every file of the package imports and cimports, as one graph of modules."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from .tree import ROOT

_CIMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]*)|c?import[ \t]+([\w.]+))",
    re.MULTILINE,
)
_STRINGS_AND_COMMENTS = re.compile(r'"""[\s\S]*?"""|#[^\n]*')


def module_of(path: Path, root: Path = ROOT) -> str:
    """A module's name; a .pyx and its .pxd are one module."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def package_files(root: Path = ROOT) -> list[Path]:
    """Sources of the package."""
    return sorted(p for p in (root / "kwsniff").rglob("*") if p.suffix in (".py", ".pyx", ".pxd"))


def import_graph(files: Iterable[Path], root: Path = ROOT) -> dict[str, set[str]]:
    """Module to the modules of the same files that it imports, wherever in the file that stands."""
    files = list(files)
    modules = {module_of(path, root) for path in files}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for path in files:
        own = module_of(path, root)
        found = _python(path) if path.suffix == ".py" else _compiled(path)
        for source, name in found:
            wanted = f"{source}.{name}" if f"{source}.{name}" in modules else source
            if wanted in modules and wanted != own:
                graph[own].add(wanted)
    return graph


def circle_in(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """One circle of the graph, its first module repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def _python(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports of the package are written out"
            yield from ((node.module or "", alias.name) for alias in node.names)


def _compiled(path: Path) -> Iterator[tuple[str, str]]:
    code = _STRINGS_AND_COMMENTS.sub("", path.read_text("utf-8"))
    for source, names, plain in _CIMPORT.findall(code):
        if plain:
            yield plain, ""
        for name in re.findall(r"[\w*]+", names):
            yield source, name
