"""The `kwsniff` command: finds the verb, runs it, turns errors into one line and an exit status."""

import argparse
import atexit
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from kwsniff import NOT_COMPILED, is_not_compiled
from kwsniff.cli.argument_parser import Parser
from kwsniff.cli.options.layouts import layouts_in_use
from kwsniff.cli.options.times import joined_times
from kwsniff.cli.standard_streams import leave_errors, print_message, says_error, standard_output
from kwsniff.errors import KwsniffError, UsageError
from kwsniff.memory import collect_rarely, is_refused_memory, spare_addresses
from kwsniff.texts import suggest

VERBS = (
    "why", "analyze", "show", "slice", "wireshark", "anonymize", "live", "sql", "compare", "pipeline",
    "explain", "decode", "upgrade", "verify",
)  # fmt: skip
"""Modules of this package, in the order of the help. Each has add_parser(subparsers) and
run(args) -> exit status; run() imports."""

DONE, BAD_NEWS, FAILED = 0, 1, 2
"""Exit status: done; done, but the result is negative or empty; error."""

_INTERRUPTED = 130

_OUT_OF_MEMORY = (
    "out of memory before reaching `--limit memory`: check ulimit -v and the container's memory limit; "
    "kwsniff needs about 1 GB of address space"
)
_ADDRESSES = {"show": 0, "slice": 0, "decode": 0, "explain": 0, "sql": 300_000_000, "wireshark": 300_000_000}
_ADDRESSES_FOR_TABLES = 220_000_000
"""Minimum bytes for numpy, Arrow and their libraries; OpenBLAS and jemalloc end the process if an allocation
fails. DuckDB loads them late."""

_EPILOG = """examples:
  kwsniff why capture.pcap                    problems, worst first, with owner and proof
  kwsniff analyze capture.pcap -o tables/     parquet tables and a summary of the capture
  kwsniff help VERB                           the options and examples of a verb
  eval "$(kwsniff --completion bash)"         TAB completion of verbs, options and values in this shell

exit status: 0 done; 1 done, but the result is negative or empty (why: a problem found; upgrade: a client
breaks; show, slice: no match; decode: undecodable; verbs that read captures: no packet in that time range or
on that port); 2 error, or an output could not be written. If some of several captures cannot be read, kwsniff
names them and reads the others; it exits with 2 only if it could read none.
"""


class _Version(argparse.Action):
    """Looks up the version on demand: the modules that read the package's metadata are slow to import."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from kwsniff.cli.version import version_line

        print(version_line())
        parser.exit()


class _Completion(argparse.Action):
    """Prints a shell's completion script."""

    def __call__(self, parser: argparse.ArgumentParser, _: object, values: object, __: object = None) -> None:
        from kwsniff.cli.completion import completion

        print(completion(make_parser(), str(values)))
        parser.exit()


class _Manual(argparse.Action):
    """Prints the manual page."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from kwsniff.cli.completion import manual
        from kwsniff.cli.version import installed_version

        print(manual(installed_version()), end="")
        parser.exit()


def make_parser(chosen: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """The parser of the whole command line, or of some verbs."""
    parser = Parser(
        prog="kwsniff",
        description="Packet-capture protocol analyzer for Apache Kafka.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument(
        "--completion",
        action=_Completion,
        choices=("bash", "zsh", "fish"),
        help="print the completion script for a shell",
    )
    parser.add_argument(
        "--man", action=_Manual, nargs=0, help="print the manual page: kwsniff --man | man -l -"
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in chosen:
        import_module(f"kwsniff.cli.{verb}").add_parser(verbs)
    return parser


def _check_verb(given: Sequence[str]) -> None:
    """Raises UsageError for an unknown verb; argparse would not suggest one."""
    if given and not given[0].startswith("-") and given[0] not in VERBS:
        raise UsageError(f"unknown verb {given[0]!r}; {suggest(given[0], VERBS)}")


def _with_help(given: Sequence[str]) -> Sequence[str]:
    """`help VERB` as the option that it is."""
    return [*given[1:2], "--help"] if given[:1] == ["help"] else given


def _run_verb(given: Sequence[str]) -> int:
    _check_verb(given)
    if not given:
        make_parser().print_help()
        return FAILED
    spare_addresses(_ADDRESSES.get(given[0], _ADDRESSES_FOR_TABLES))
    # Building the options of all verbs takes longer than building those of the one verb in use.
    verb = [given[0]] if given[0] in VERBS else VERBS
    args = make_parser(verb).parse_args([*joined_times(given)])
    with layouts_in_use(args):
        return int(args.run(args))


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit status. Errors are one line on standard error."""
    # numpy would start threads for linear algebra, which kwsniff does not use; they would spin at start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with standard_output():
            return _run_verb(_with_help([*(sys.argv[1:] if arguments is None else arguments)]))
    except KwsniffError as error:
        says_error(error)
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of the output has closed the pipe
        return DONE
    except ModuleNotFoundError as error:
        if not is_not_compiled(error):
            raise
        print_message(f"error: {NOT_COMPILED}")
        return FAILED
    except Exception as error:
        if not is_refused_memory(error):
            raise
        print_message(f"error: {_OUT_OF_MEMORY}")
        return FAILED
    finally:
        leave_errors()


def main() -> NoReturn:
    """The command in its own process. Exits without Python's teardown, which takes as long as the analysis of
    a small capture."""
    collect_rarely()
    status = run()
    if "pyspark" in sys.modules:  # it has child processes to end
        sys.exit(status)
    atexit._run_exitfuncs()
    with suppress(OSError, AttributeError):  # closed, or None
        sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
