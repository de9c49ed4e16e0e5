"""`python -m tests.perf [--quick] [--size MB] [--keep DIR] [--no-tshark] [--against REVISION]`"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.perf import against, fields, findings, loads, repeat
from tests.perf.measure import Measured, compile_sources, fastest, least, process
from tests.traffic.tcp import Scene

TSHARK_FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "kafka.api_key",
    "kafka.api_version",
    "kafka.correlation_id",
    "kafka.client_id",
    "kafka.error",
)

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Load:
    """One generated capture."""

    name: str
    path: Path
    calls: int

    @property
    def megabytes(self) -> float:
        return self.path.stat().st_size / 1e6


@dataclass(frozen=True, slots=True)
class Mix:
    """What may be chosen of the mixed load."""

    connections: int = 200
    topics: int = 50
    errors: float = 0.01

    def __str__(self) -> str:
        return f"{self.connections}-{self.topics}-{self.errors:g}"


def say(*columns: str) -> None:
    head, *rest = columns
    sys.stdout.write(f"{head:<44}" + "".join(f"{column:>16}" for column in rest) + "\n")
    sys.stdout.flush()


def prepared(folder: Path, name: str, megabytes: float, mix: Mix = Mix()) -> Load:
    """The capture of this load and size, made once per version of the generator."""
    sources = sorted(Path(__file__).parents[1].glob("traffic/*.py")) + sorted(
        Path(__file__).parent.glob("*.py")
    )
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    kind = f"{name}-{mix}" if name == "mixed" else name
    path = folder / f"{kind}-{megabytes:g}-{version}.pcap"
    count = path.with_suffix(".calls")
    if not count.exists():
        makes: dict[str, Callable[[loads.Offsets], Scene]] = {
            "large": loads.large,
            "20 kB": lambda offsets: loads.large(offsets, (20_000,) * 3),
            "small": loads.small,
            "mixed": lambda offsets: loads.mixed(offsets, mix.connections, mix.topics, mix.errors),
        }
        period = loads.LARGE_PERIOD if name in {"large", "20 kB"} else loads.SMALL_PERIOD
        calls = repeat.write(path, loads.rounds(makes[name]), megabytes=megabytes, period_ns=period)
        count.write_text(str(calls))
    with path.open("rb") as capture:  # into the page cache
        while capture.read(1 << 20):
            pass
    return Load(name, path, int(count.read_text()))


def kwsniff_command() -> list[str]:
    """The installed command; without it (a bare checkout) the function it calls."""
    beside = Path(sys.executable).with_name("kwsniff")
    if beside.exists():
        return [str(beside)]
    return [sys.executable, "-c", "import sys; from kwsniff.cli.main import run; sys.exit(run())"]


def run_kwsniff(load: Load, folder: Path, *options: str) -> Measured:
    target = folder / "tables"
    shutil.rmtree(target, ignore_errors=True)
    done = process(
        [*kwsniff_command(), "analyze", str(load.path), "-o", str(target), *options], folder / "kwsniff.out"
    )
    if done.problem is None:
        found = rows_of(target)
        if found != load.calls:
            return replace(done, problem=f"{found} calls instead of {load.calls}")
    return done


def rows_of(folder: Path) -> int:
    """Rows of the api_calls table in the folder of results."""
    from pyarrow import parquet

    files = [path for path in folder.rglob("*.parquet") if "api_calls" in str(path.relative_to(folder))]
    return sum(parquet.ParquetFile(path).metadata.num_rows for path in files)


def run_tshark(load: Load, folder: Path) -> Measured:
    output = folder / "tshark.out"
    command = ["tshark", "-r", str(load.path), "-d", "tcp.port==9092,kafka", "-T", "fields"]
    command += [part for name in TSHARK_FIELDS for part in ("-e", name)]
    done = process(command, output)
    if done.problem is None:
        with output.open("rb") as lines:
            found = sum(1 for line in lines if line.split(b"\t")[3])
        if found != load.calls:
            return replace(done, problem=f"{found} requests instead of {load.calls}")
    return done


def in_process(load: Load) -> float:
    """Seconds of kwsniff.analyze in a warm process: no start-up, no parquet."""
    import kwsniff

    def run() -> None:
        found = kwsniff.analyze([str(load.path)]).api_calls.num_rows
        if found != load.calls:
            raise RuntimeError(f"{found} calls instead of {load.calls}")

    run()
    return fastest(run, 3)


def speed(name: str, load: Load, row: Measured, anchor: Measured | None) -> None:
    """Ratios of wall and of processor time: the second holds when something else runs on the machine."""
    seconds = row.seconds
    columns = [f"{seconds:.2f} s", f"{load.megabytes / seconds:,.0f} MB/s", f"{load.calls / seconds:,.0f}/s"]
    columns.append(f"{row.processor_seconds:.2f} s" if row.processor_seconds else "-")
    columns.append(f"{anchor.seconds / seconds:.1f}x" if anchor else "-")
    both = anchor is not None and row.processor_seconds
    columns.append(f"{anchor.processor_seconds / row.processor_seconds:.1f}x" if anchor and both else "-")
    say(name, *columns)


def attempt(name: str, run: Callable[[], None]) -> None:
    """A row that cannot be measured says why; the others still are."""
    try:
        run()
    except Exception as error:
        say(name, f"not measured: {type(error).__name__}: {error}")


def compare(load: Load, folder: Path, with_tshark: bool) -> None:
    title = f"{load.name}: {load.megabytes:,.0f} MB, {load.calls:,} calls"
    say(title, "time", "bytes", "calls", "processor", "time ratio", "processor ratio")
    anchor: Measured | None = None
    if with_tshark:
        best = least([run_tshark(load, folder) for _ in range(2)])
        if best.problem:
            say("  tshark, fields", f"not measured: {best.problem}")
        else:
            anchor = best
            speed("  tshark, fields", load, best, anchor)
    # In turns: what else the machine does meets both alike.
    rounds = [
        (run_kwsniff(load, folder), run_kwsniff(load, folder, "--table", "api_calls")) for _ in range(ROUNDS)
    ]
    ours = least([every for every, _ in rounds])
    if ours.problem:
        say("  kwsniff analyze -o", f"not measured: {ours.problem}")
    else:
        speed("  kwsniff analyze -o", load, ours, anchor)
        alone(load, least([one for _, one in rounds]), ours)
    attempt(
        "  kwsniff.analyze, warm",
        lambda: speed("  kwsniff.analyze, warm", load, Measured(in_process(load), 0.0, 0), anchor),
    )


def alone(load: Load, one: Measured, ours: Measured) -> None:
    """What the other tables cost on top of api_calls: the ratios are those of all tables to this one."""
    name = "  kwsniff analyze -o --table api_calls"
    if one.problem:
        say(name, f"not measured: {one.problem}")
    else:
        speed(name, load, one, ours)


def findings_cost(load: Load, folder: Path) -> None:
    """Analyses with findings and without, in turns: the last column is the ratio of their processor times."""
    turns = [
        (run_kwsniff(load, folder), run_kwsniff(load, folder, *findings.without_findings()))
        for _ in range(ROUNDS)
    ]
    every, rest = (least(runs) for runs in zip(*turns, strict=True))
    if problem := every.problem or rest.problem:
        say(f"  {load.name}", f"not measured: {problem}")
        return
    ratio = every.processor_seconds / rest.processor_seconds
    columns = (f"{each.processor_seconds:.3f} s" for each in (every, rest))
    say(f"  {load.name}", *columns, f"{ratio:.3f}x")


def filter_cost(load: Load, folder: Path) -> None:
    """`show` of a client without calls, in turns with `analyze`: the last column is the ratio of their
    processor times. A call that is printed would add its own time."""
    words = [*kwsniff_command(), "show", str(load.path), "--where", "client_id = 'absent'"]
    turns = [
        (run_kwsniff(load, folder), process(words, folder / "show.out", done=(1,))) for _ in range(ROUNDS)
    ]
    whole, shown = (least(runs) for runs in zip(*turns, strict=True))
    if problem := whole.problem or shown.problem:
        say(f"  {load.name}", f"not measured: {problem}")
        return
    ratio = shown.processor_seconds / whole.processor_seconds
    columns = (f"{each.processor_seconds:.3f} s" for each in (shown, whole))
    say(f"  {load.name}", *columns, f"{ratio:.3f}x")


def findings_scale(load: Load, folder: Path, calls: int) -> None:
    """Findings of a folder of tables with so many calls."""
    if problem := run_kwsniff(load, folder).problem:
        say("  kwsniff why DIR", f"not measured: {problem}")
        return
    many = folder / "many"
    number = findings.repeat_tables(folder / "tables", many, calls)
    done = findings.of_folder(kwsniff_command(), many, folder / "why.out")
    shutil.rmtree(many)
    columns = (f"{done.seconds:.1f} s", f"{done.processor_seconds:.1f} s", f"{done.peak_bytes / 1e6:,.0f} MB")
    say(f"  kwsniff why DIR, {number:,} calls", *([done.problem] if done.problem else columns))


def memory(folder: Path, name: str, megabytes: float, with_tshark: bool) -> None:
    for factor in (1, 2):
        load = prepared(folder, name, megabytes * factor)
        ours = run_kwsniff(load, folder)
        row = [ours.problem or f"{ours.peak_bytes / 1e6:,.0f} MB"]
        if with_tshark:
            theirs = run_tshark(load, folder)
            row.append(theirs.problem or f"{theirs.peak_bytes / 1e6:,.0f} MB")
        say(f"  peak memory, {name}, {load.megabytes:,.0f} MB", *row)


def per_field() -> None:
    for row in fields.measure():
        ratio = row.ns_per_field / row.copy_ns_per_field
        say(
            f"  {row.name}",
            f"{row.fields:,} fields",
            f"{row.ns_per_field:.2f} ns/field",
            f"{row.copy_ns_per_field:.3f} ns copy",
            f"{ratio:.1f}x copy",
        )


def start_up(folder: Path) -> None:
    tiny = prepared(folder, "small", 0.2)
    runs = [process([*kwsniff_command(), "--help"], folder / "help.out") for _ in range(3)]
    say(
        "  kwsniff --help",
        min(runs, key=lambda row: row.seconds).problem or f"{min(r.seconds for r in runs):.3f} s",
    )
    small = [run_kwsniff(tiny, folder) for _ in range(3)]
    best = min(small, key=lambda row: row.seconds)
    say(f"  kwsniff analyze of {tiny.megabytes:.1f} MB", best.problem or f"{best.seconds:.3f} s")


def beside(revision: str, folder: Path, megabytes: float, mix: Mix) -> int:
    """This checkout and `revision` on the mixed load and on messages of 20 kB; 2 where it cannot be built."""
    try:
        other = against.build(revision, folder)
        against.command_of(other)
    except RuntimeError as error:
        sys.stderr.write(f"{revision}: {error}\n")
        return 2
    for name, size in (("mixed", megabytes), ("20 kB", megabytes)):
        load = prepared(folder, name, size, mix)
        runs, differing = against.take_turns([against.ROOT, other], load.path, folder, ROUNDS)
        title = f"{load.name}: {load.megabytes:,.0f} MB, {load.calls:,} calls"
        against.report(say, title, ["this checkout", revision], runs, differing)
    return 0


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.perf", description=__doc__)
    parser.add_argument("--size", type=float, default=400.0, help="megabytes of the large load (default 400)")
    parser.add_argument(
        "--calls", type=int, default=10_000_000, help="calls in a folder of tables (default 10 million)"
    )
    parser.add_argument("--quick", action="store_true", help="a few megabytes only: does it run?")
    parser.add_argument(
        "--keep", type=Path, help="folder for the captures (default: in the temporary folder)"
    )
    parser.add_argument(
        "--against",
        metavar="REVISION",
        help="run another revision beside this one, in turns, and nothing else",
    )
    parser.add_argument("--no-tshark", action="store_true", help="leave tshark out")
    parser.add_argument("--connections", type=int, default=200, help="of the mixed load (default 200)")
    parser.add_argument("--topics", type=int, default=50, help="of the mixed load (default 50)")
    parser.add_argument(
        "--errors", type=float, default=0.01, help="of the mixed load, a share (default 0.01)"
    )
    options = parser.parse_args(arguments)
    size = 6.0 if options.quick else options.size
    folder: Path = options.keep or Path(tempfile.gettempdir()) / "kwsniff-perf"
    folder.mkdir(parents=True, exist_ok=True)
    with_tshark = not options.no_tshark and shutil.which("tshark") is not None
    say("captures and results", str(folder))
    compile_sources()
    mix = Mix(options.connections, options.topics, options.errors)
    if options.against is not None:
        return beside(options.against, folder, size, mix)
    for name, megabytes in (("large", size), ("small", size * 0.55), ("mixed", size * 0.55)):
        compare(prepared(folder, name, megabytes, mix), folder, with_tshark)
    say("memory", "kwsniff", "tshark" if with_tshark else "")
    for name in ("large", "small"):
        memory(folder, name, size / 4, with_tshark)
    say("findings", "with", "without", "processor ratio")
    for name, megabytes in (("large", size), ("small", size * 0.55)):
        findings_cost(prepared(folder, name, megabytes), folder)
    say("filters", "show", "analyze", "processor ratio")
    filter_cost(prepared(folder, "mixed", size * 0.55, mix), folder)
    say("findings of a folder", "time", "processor", "peak memory")
    calls = 100_000 if options.quick else options.calls
    findings_scale(prepared(folder, "small", size * 0.55), folder, calls)
    say("decoding", "", "engine", "memory copy", "")
    attempt("  per field", per_field)
    say("start-up")
    start_up(folder)
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
