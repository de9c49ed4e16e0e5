"""No circles: neither among the files of the package nor among the folders of the compiled core."""

from pathlib import Path

from .imports import circle_in, import_graph, package_files

FRONT = "kwsniff"
"""The package itself knows every room, and no room needs it."""

# Bottom to top; analyzer and state put the rooms together, limits is known to all of them.
CORE_ROOMS = ("bytes", "capture", "tcp", "tls", "wire", "columns", "kafka", "rows")


def test_files_import_each_other_in_no_circle() -> None:
    graph = import_graph(package_files())
    graph[FRONT] = set()
    assert circle_in(graph) == []


def test_rooms_of_the_core_look_down_only() -> None:
    up = []
    for module, imported in import_graph(package_files()).items():
        if not module.startswith("kwsniff.core."):
            continue
        room = module.split(".")[2]
        own = CORE_ROOMS.index(room) if room in CORE_ROOMS else len(CORE_ROOMS)
        for other in imported:
            above = other.split(".")[2] if other.startswith("kwsniff.core.") else ""
            up += [f"{module} -> {other}"] if above in CORE_ROOMS[own + 1 :] else []
            up += [f"{module} -> {other}"] if above in ("analyzer", "state") and room in CORE_ROOMS else []
    assert up == []


def _circle_of(folder: Path, texts: dict[str, str]) -> list[str]:
    for name, text in texts.items():
        path = folder / "kwsniff" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return circle_in(import_graph(package_files(folder), folder))


def test_a_circle_of_cimports_is_found(tmp_path: Path) -> None:
    circle = _circle_of(
        tmp_path,
        {
            "core/a.pyx": "from kwsniff.core.b cimport (\n    one, two,\n)\n",
            "core/b.pxd": "cimport kwsniff.core.c\n",
            "core/b.pyx": '"""from kwsniff.core.a cimport nothing"""\n',
            "core/c.pxd": "# from kwsniff.core.a cimport nothing\nfrom kwsniff.core.a cimport *\n",
        },
    )
    assert len(circle) == 4
    assert set(circle) == {"kwsniff.core.a", "kwsniff.core.b", "kwsniff.core.c"}


def test_a_circle_by_an_import_inside_a_function_is_found(tmp_path: Path) -> None:
    texts = {
        "a.py": "from kwsniff import b\n",
        "b.py": "def work() -> None:\n    import kwsniff.a\n",
        "c.py": "from kwsniff.a import b\n",
    }
    assert set(_circle_of(tmp_path, texts)) == {"kwsniff.a", "kwsniff.b"}


def test_files_without_circles_have_none(tmp_path: Path) -> None:
    assert (
        _circle_of(tmp_path, {"a.py": "from kwsniff import b\nimport kwsniff.c\n", "b.py": "", "c.py": ""})
        == []
    )
