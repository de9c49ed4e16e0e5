"""Names: the field's words, functions as verbs, one word with one meaning."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from .tree import ROOT, relative, tracked_files

_VERBS = {
    "add", "bind", "build", "embed", "end", "exceed", "expand", "extend", "feed", "find", "need",
    "proceed", "read", "send", "shed", "speed", "spread", "wind",
}  # fmt: skip
"""Verbs that end like a past participle."""
_PARTICIPLE = re.compile(
    r"[a-z]+ed|of|begun|chosen|drawn|found|given|gone|grown|held|kept|known|left|made|met|said|says|seen|sent|shown|taken|told|written"
)
_OLD = {
    "octets": "a span of bytes", "dialog": "the Kafka state of a connection", "held": "the reorder queue",
    "beginnings": "midstream", "strays": "window_check", "unseen": "tail_loss", "selective": "sack",
    "stamps": "timestamps", "copies": "duplicates", "exchanges": "dispatch", "silence": "unanswered",
    "kernels": "compute", "judgement": "findings", "foremost": "top_k", "worth_sharing": "parallelism",
    "lake": "table_formats", "claims": "output_lock", "owed": "overdue", "wishes": "options",
    "early": "pushdown", "grids": "text_tables", "shells": "completion", "recorders": "capture_tools",
    "fitting": "padded_compression", "known_calls": "call_lookup", "known_end_times": "endings",
    "chosen_rows": "filtered_rows", "chosen_folder": "filtered_folder", "compressed_part": "compressed_batch",
}  # fmt: skip
"""Names of modules that were not the field's, and what is."""
_VAGUE = {"gather", "look", "note", "over", "settle"}
"""Names of functions that meant something else in each module: `append_batches`, `flush`, `select`, ..."""
_SHARED = 3
"""Folders in which the same bare name of a module may stand."""
_EVERYWHERE = {"__init__", "findings", "errors"}
"""`findings` and `errors` are what these folders do with the same thing."""


def _functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in tracked_files():
        if path.suffix == ".py" and relative(path).startswith("kwsniff/"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield relative(path), node


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(each) for each in node.decorator_list)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("told", True),
        ("_taken", True),
        ("of", True),
        ("merged", True),
        ("take", False),
        ("feed", False),
        ("merge", False),
    ],
)
def test_past_participles_are_told_from_verbs(name: str, is_one: bool) -> None:
    assert _is_participle(name) is is_one


def _is_participle(name: str) -> bool:
    bare = name.strip("_")
    return bare not in _VERBS and _PARTICIPLE.fullmatch(bare) is not None


def test_functions_are_verbs() -> None:
    assert [
        f"{path}: {node.name}"
        for path, node in _functions()
        if _is_participle(node.name) and not _is_property(node)
    ] == []


def test_names_of_functions_say_what_they_do() -> None:
    assert [f"{path}: {node.name}" for path, node in _functions() if node.name in _VAGUE] == []


def test_modules_have_the_fields_names() -> None:
    modules = {
        path.stem: relative(path)
        for path in tracked_files()
        if path.suffix in (".py", ".pyx", ".pxd") and relative(path).startswith("kwsniff/")
    }
    assert {name: modules[name] for name in _OLD if name in modules} == {}


def test_a_bare_name_belongs_to_few_folders() -> None:
    folders: dict[str, set[Path]] = defaultdict(set)
    for path in tracked_files():
        if path.suffix in (".py", ".pyx") and relative(path).startswith("kwsniff/"):
            folders[path.stem].add(path.parent.relative_to(ROOT))
    assert {
        name: places for name, places in folders.items() if len(places) > _SHARED and name not in _EVERYWHERE
    } == {}


def test_a_name_belongs_to_one_module_of_the_core() -> None:
    """A library that holds several compiled modules names each by its file alone."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in tracked_files():
        if path.suffix in (".pyx", ".pxd") and relative(path).startswith("kwsniff/core/"):
            places[path.stem].add(str(path.parent.relative_to(ROOT)))
    assert {name: folders for name, folders in places.items() if len(folders) > 1} == {}
