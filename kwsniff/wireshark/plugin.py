"""The plugin's place: the user's own folders of Wireshark, as tshark names them."""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kwsniff.atomic_file import write_atomically
from kwsniff.errors import OutputError, UsageError
from kwsniff.wireshark.packet_index import ENDING, MARK, make_folder

_SOURCE: Final = Path(__file__).with_name("kwsniff.lua")
_NAME: Final = "kwsniff.lua"
_OURS: Final = b"-- Plugin of kwsniff. "
_PATIENCE_S: Final = 60


@dataclass(frozen=True, slots=True)
class Folders:
    """`plugins`: where Wireshark looks for this user's plugins; `indexes`: where that of kwsniff looks."""

    plugins: Path
    indexes: Path

    @property
    def plugin(self) -> Path:
        """The installed plugin."""
        return self.plugins / _NAME


def find_folders() -> Folders:
    """As tshark names them; else those of the environment, else Wireshark's usual ones.

    Source: Wireshark's wsutil/filesystem.c. WIRESHARK_PLUGIN_DIR counts where tshark heeds it, which it does
    not for root.
    """
    told = _ask_tshark()
    wanted = os.environ.get("WIRESHARK_PLUGIN_DIR")
    configured = os.environ.get("WIRESHARK_CONFIG_DIR")
    home = Path.home()
    plugins = told.get("Personal Lua Plugins") or home / ".local/lib/wireshark/plugins"
    if wanted and (not told or wanted in told.values()):
        plugins = wanted
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "wireshark"
    return Folders(
        Path(plugins), Path(told.get("Personal configuration") or configured or settings) / "kwsniff"
    )


def _ask_tshark() -> dict[str, str]:
    """The folders that `tshark -G folders` names; empty without tshark."""
    program = shutil.which("tshark")
    if program is None:
        return {}
    try:
        said = subprocess.run(  # noqa: S603
            [program, "-G", "folders"], capture_output=True, timeout=_PATIENCE_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(re.findall(r"^([^:\n]+):[ \t]+(.*\S)", os.fsdecode(said), re.MULTILINE))


def install(folders: Folders) -> Path:
    """Writes the plugin, also over one of an earlier version; returns its path. Raises UsageError where a
    file of others has its name, OutputError where it cannot be written."""
    _refuse_foreign(folders.plugin)
    make_folder(folders.plugins)
    with write_atomically(folders.plugin, binary=True) as file:
        file.write(_SOURCE.read_bytes())
    return folders.plugin


def remove(folders: Folders) -> list[Path]:
    """Removes the plugin and every index, and returns their paths. Raises UsageError where a file of others
    has the plugin's name."""
    _refuse_foreign(folders.plugin)
    indexes = [path for path in sorted(folders.indexes.glob(f"*{ENDING}")) if _begins_with(path, MARK)]
    there = [path for path in (folders.plugin, *indexes) if path.is_file()]
    for path in there:
        try:
            path.unlink()
        except OSError as error:
            raise OutputError(f"{path}: cannot remove: {error.strerror}") from error
    with suppress(OSError):  # it has other files
        folders.indexes.rmdir()
    return there


def _refuse_foreign(plugin: Path) -> None:
    if os.path.lexists(plugin) and not _begins_with(plugin, _OURS):
        raise UsageError(f"{plugin} is not kwsniff's plugin; move it away")


def _begins_with(path: Path, mark: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(mark)) == mark
    except OSError:
        return False
