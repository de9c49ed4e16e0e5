"""What was compiled is compiled again when its text or its settings are others, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Modules beside kwsniff's own setup.py, and a compiler that writes down what it was asked to compile."""
    core = tmp_path / "kwsniff" / "core"
    core.mkdir(parents=True)
    shutil.copy(ROOT / "setup.py", tmp_path)
    (core / "shared.pxd").write_text("cdef inline int twice(int x):\n    return 2 * x\n", "utf-8")
    (core / "one.pyx").write_text(
        "from kwsniff.core.shared cimport twice\n\n\ndef one():\n    return twice(1)\n", "utf-8"
    )
    (core / "two.pyx").write_text("def two():\n    return 2\n", "utf-8")
    (core.parent / "__init__.py").touch()
    shutil.copy(ROOT / "kwsniff" / "core" / "__init__.py", core)
    (core / "shared.pyx").touch()
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nexec gcc "$@"\n', "utf-8")
    compiler.chmod(0o755)
    return tmp_path


def build(project: Path, **settings: str) -> set[str]:
    """Which modules the compiler was asked for; each build has folders of its own, as pip's have."""
    asked = project / "asked"
    asked.unlink(missing_ok=True)
    command = ["setup.py", "-q", "build_ext", "--inplace", "--build-temp"]
    subprocess.run(
        [sys.executable, *command, str(project / "temporary")],
        check=True,
        capture_output=True,
        cwd=project,
        env={**os.environ, "KWSNIFF_WARNINGS": "", "CC": str(project / "compiler"), **settings},
        timeout=300,
    )
    shutil.rmtree(project / "temporary", ignore_errors=True)
    for module in project.glob("kwsniff/core/*.so"):
        module.unlink()
    lines = asked.read_text("utf-8").splitlines() if asked.exists() else []
    return {name for name in ("one", "two", "shared") if any(f"{name}.c" in line for line in lines)}


def translated(project: Path) -> dict[str, int]:
    """The C files, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in project.glob("build/c/kwsniff/core/*.c")}


@pytest.mark.slow
def test_a_module_is_compiled_again_when_it_is_another(project: Path) -> None:
    assert build(project) == {"one", "two", "shared"}
    # As Cython's own texts are, where pip has just unpacked them.
    made = translated(project)
    for path in project.glob("kwsniff/core/*.p?*"):
        path.touch()
    assert build(project) == set()
    assert translated(project) == made
    two = project / "kwsniff/core/two.pyx"
    two.write_text(two.read_text("utf-8").replace("return 2", "return 3"), "utf-8")
    assert build(project) == {"two"}
    shared = project / "kwsniff/core/shared.pxd"
    shared.write_text(shared.read_text("utf-8").replace("2 * x", "x + x"), "utf-8")
    assert "one" in build(project)
    assert build(project) == set()
    (project / "build/c/kwsniff/core/two.c").unlink()
    assert build(project) == set()
    assert set(translated(project)) == set(made)
    for setting in ("CFLAGS", "ARCHFLAGS", "MACOSX_DEPLOYMENT_TARGET"):
        value = "11.0" if setting == "MACOSX_DEPLOYMENT_TARGET" else "-g0"
        assert build(project, **{setting: value}) == {"one", "two", "shared"}, setting


@pytest.mark.slow
def test_a_build_for_elsewhere_leaves_a_folder_that_python_can_use(project: Path) -> None:
    """As `pip install .` in a clone builds: Python there takes this folder, not what was installed."""
    command = ["setup.py", "-q", "build_ext", "--build-lib", "elsewhere", "--build-temp", "temporary"]
    subprocess.run([sys.executable, *command], check=True, capture_output=True, cwd=project, timeout=300)
    assert [*(project / "elsewhere").glob("kwsniff/core/modules.*")]
    asked = "from kwsniff.core.one import one; print(one())"
    done = subprocess.run(
        [sys.executable, "-c", asked], check=True, capture_output=True, text=True, cwd=project
    )
    assert done.stdout == "2\n"


def test_two_modules_of_one_name_do_not_build(project: Path) -> None:
    (project / "kwsniff" / "core" / "tcp").mkdir()
    (project / "kwsniff" / "core" / "tcp" / "one.pyx").touch()
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=project, timeout=300)
    assert done.returncode == 1
    assert "two modules of one shared object cannot have the same name: one" in done.stderr


@pytest.mark.slow
def test_what_cython_warns_of_ends_the_build_where_that_is_asked_for(project: Path) -> None:
    (project / "kwsniff" / "core" / "two.pyx").write_text("def two():\n    return 2\n    return 3\n", "utf-8")
    assert build(project) == {"one", "two", "shared"}
    with pytest.raises(subprocess.CalledProcessError) as ended:
        build(project, KWSNIFF_WARNINGS="errors")
    assert b"Unreachable code" in ended.value.stderr


@pytest.mark.slow
def test_a_second_build_follows_what_the_first_one_counted(project: Path) -> None:
    """Where no counts are found, the second build fails."""
    profile = project / "profile"
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    for flags, asked in (("", "-fprofile-generate"), ("-Werror=missing-profile", "-fprofile-use")):
        settings = {"CC": str(project / "compiler"), "KWSNIFF_PROFILE": str(profile), "CFLAGS": flags}
        (project / "asked").unlink(missing_ok=True)
        subprocess.run(
            command, check=True, capture_output=True, cwd=project, env={**os.environ, **settings}, timeout=300
        )
        compiled = [line for line in (project / "asked").read_text("utf-8").splitlines() if "two.c" in line]
        assert [line for line in compiled if asked in line]
        called = [sys.executable, "-c", "from kwsniff.core.two import two; print(two())"]
        assert subprocess.run(called, check=True, capture_output=True, text=True, cwd=project).stdout == "2\n"
        assert [*profile.rglob("*two.gcda")]
