"""A progress bar on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int | None], None]
"""Takes the name of a capture, the bytes read, and its size in bytes if known."""


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Progress | None]:
    """A bar on standard error that shows the bytes read and the remaining time."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.progress import TransferSpeedColumn as Speed
    from rich.table import Column

    console = Console(stderr=True)
    # One line in any width: 15 cells for the size, 7 for the time, and 11 for the speed if they fit.
    fast = console.width >= 80
    room = console.width - (40 if fast else 28)
    named = max(min(40, room - 12), 8)
    whole = Column(no_wrap=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(max(min(40, room - named), 4)),
        DownloadColumn(table_column=whole),
        *([Speed(table_column=whole)] if fast else []),
        TimeRemainingColumn(table_column=whole),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def show(name: str, done: int, total: int | None) -> None:
            bar.update(task, description=name[-named:].replace("[", r"\["), completed=done, total=total)

        yield show
