"""``kwsniff decode``: message bytes to a tree or, line by line, to JSON."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

from kwsniff.cli.options.layouts import add_layouts_option
from kwsniff.cli.options.limits import add_limit_option, parse_limits
from kwsniff.cli.options.times import add_zone_option, zone_of
from kwsniff.cli.pasted_bytes import Pasted, read_pasted, without_size
from kwsniff.cli.standard_streams import print_message, standard_input
from kwsniff.errors import UsageError
from kwsniff.limits import Limits
from kwsniff.texts import json_text

_EXAMPLE = """examples:
  kwsniff decode 00120000000000070003666f6f
  kwsniff decode --response --api fetch --version 12 - < message.hex
  kwsniff decode --jsonl - < messages.jsonl      one {"direction", "hex", "api_key", "api_version"} per line
  kwsniff decode --jsonl --schema OffsetCommitValue - < values.jsonl         one {"version", "hex"} per line
  kwsniff decode --jsonl --records - < sets.jsonl                            one {"hex"} per line
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "decode",
        help="decode message bytes to a tree or JSON",
        description="Decode messages (header and body, with or without the 4-byte size before them on the "
        "wire).",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "hex",
        metavar="HEX|-",
        nargs="?",
        default="-",
        help="hex digits, b'...' or a hex dump (tcpdump -X, xxd, Wireshark); - reads standard input",
    )
    parser.add_argument(
        "--jsonl", action="store_true", help="one JSON object per input line, one per output line"
    )
    parser.add_argument(
        "--schema", metavar="NAME", help="with --jsonl: lines are {version, hex} of this schema"
    )
    parser.add_argument("--records", action="store_true", help="record sets: batches and records as JSON")
    parser.add_argument("--response", action="store_true", help="a response; needs --api and --version")
    parser.add_argument("--api", metavar="NAME|KEY", help="API of a response: fetch, Fetch or 1")
    parser.add_argument("--version", metavar="N", type=int, dest="api_version", help="version of a response")
    parser.add_argument("--json", action="store_true", help="JSON instead of a tree")
    parser.add_argument(
        "--hexdump", action="store_true", help="show the bytes next to the fields that begin in them"
    )
    add_zone_option(parser)
    add_limit_option(parser)
    add_layouts_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 decoded, 1 a message did not decode, 2 error. --jsonl always ends with 0."""
    if args.schema is not None and (args.records or not args.jsonl):
        raise UsageError(
            "--schema needs --jsonl with lines of {version, hex}, and cannot be used with --records"
        )
    if not args.jsonl:
        return _one_record_set(args) if args.records else _one_message(args)
    write_lines(answers(_input_lines(args.hex), _line_decoder(args)), sys.stdout)
    return 0


def _limits(args: argparse.Namespace) -> Limits:
    return Limits.with_changes(parse_limits(args.limit))


LineDecoder = Callable[[dict[str, Any], bytes], str]


def _line_decoder(args: argparse.Namespace) -> LineDecoder:
    """A function from an input line's object and bytes to an output line; it may raise BadLine."""
    from kwsniff.layout.catalog import load_catalog

    catalog = load_catalog()
    limits = _limits(args)
    if args.records:
        from kwsniff.view.records import decode_records

        return lambda line, data: json_text(
            decode_records(data, limit=limits.decompressed_bytes, catalog=catalog).as_dict()
        )
    if args.schema is not None:
        from kwsniff.view.bare_bodies import check_schema, decode_schema

        check_schema(args.schema, catalog=catalog)
        return lambda line, data: json_text(
            decode_schema(data, args.schema, whole_number(line, "version"), catalog=catalog)
        )
    from kwsniff.view.decode import decode

    def message(line: dict[str, Any], data: bytes) -> str:
        direction = line.get("direction")
        if direction == "request":
            return decode(data, catalog=catalog, limits=limits).json()
        if direction != "response":
            raise BadLine("bad_direction")
        key, version = whole_number(line, "api_key"), whole_number(line, "api_version")
        return decode(
            data, direction="response", api_key=key, api_version=version, catalog=catalog, limits=limits
        ).json()

    return message


def _input_lines(argument: str) -> Iterable[bytes]:
    return standard_input() if argument == "-" else argument.encode("utf-8", "surrogateescape").splitlines()


def write_lines(lines: Iterable[str], out: TextIO) -> None:
    """Write each line immediately to a terminal, in blocks elsewhere."""
    flush = out.isatty()
    for line in lines:
        out.write(line + "\n")
        if flush:
            out.flush()
    out.flush()


class BadLine(Exception):
    """An input line that does not name a message; the text is the error code."""


def answers(lines: Iterable[bytes], decoder: LineDecoder) -> Iterator[str]:
    """One output line for every input line that is not blank, valid or not."""
    for line in lines:
        if not line.strip():
            continue
        try:
            given = parse_line(line)
            yield decoder(given, parse_hex(given))
        except BadLine as error:
            yield _bad_line(str(error))


def _bad_line(code: str) -> str:
    error = {"code": code, "path": "", "offset": 0}
    empty: dict[str, Any] = {
        "api_key": None,
        "api_version": None,
        "header": None,
        "body": None,
        "unknown_tags": [],
    }
    return json_text({**empty, "error": error})


def parse_line(line: bytes) -> dict[str, Any]:
    """The JSON object of an input line; BadLine otherwise."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadLine("bad_json") from error
    if not isinstance(value, dict):
        raise BadLine("bad_json")
    return value


def parse_hex(line: dict[str, Any]) -> bytes:
    """The bytes of the line's ``hex``."""
    text = line.get("hex")
    if not isinstance(text, str):
        raise BadLine("bad_hex")
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise BadLine("bad_hex") from error


def whole_number(line: dict[str, Any], name: str) -> int:
    """A JSON integer of the line; BadLine ``bad_NAME`` when it is missing or something else."""
    value = line.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadLine(f"bad_{name}")
    return value


def _read_argument(argument: str) -> Pasted:
    return read_pasted(standard_input().read().decode("utf-8", "replace") if argument == "-" else argument)


def _say_form(pasted: Pasted) -> None:
    """What the bytes were read as, where that is not plain."""
    if pasted.form != "hex" or pasted.left_out:
        without = f", without {', '.join(pasted.left_out)}" if pasted.left_out else ""
        print_message(f"read as {pasted.form}{without}")


def _one_record_set(args: argparse.Namespace) -> int:
    from kwsniff.view.records import decode_records

    found = decode_records(_read_argument(args.hex).data, limit=_limits(args).decompressed_bytes)
    print(json_text(found.as_dict(), indent=2))
    return 1 if found.error else 0


def _one_message(args: argparse.Namespace) -> int:
    from kwsniff.layout.catalog import load_catalog
    from kwsniff.layout.spoken import owner_of
    from kwsniff.view.decode import decode

    catalog = owner_of(load_catalog(), args.api or "")
    options: dict[str, Any] = {"catalog": catalog, "limits": _limits(args)}
    if args.response:
        api = catalog.api(args.api) if args.api is not None else None
        if api is None or args.api_version is None:
            raise UsageError(
                "a response does not contain its API and version: give --api and --version, e.g. --api "
                "fetch --version 12"
            )
        options |= {"direction": "response", "api_key": api.key, "api_version": args.api_version}
    elif args.api is not None or args.api_version is not None:
        raise UsageError(
            "--api and --version are only for --response; a request contains its API and version"
        )
    pasted = _read_argument(args.hex)
    message = decode(pasted.data, **options)
    # The first four bytes of a message may happen to be a size: an api key and version, a correlation id.
    if message.error and (shorter := without_size(pasted)) is not pasted:
        pasted, message = shorter, decode(shorter.data, **options)
    _say_form(pasted)
    if args.json:
        print(json_text(message.as_full_dict()))
    elif args.hexdump:
        print(message.hexdump())
    else:
        print(message.text(zone_of(args)))
    return 1 if message.error else 0
