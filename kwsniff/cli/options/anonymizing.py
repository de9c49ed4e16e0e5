"""``--key`` and ``--map``, and the report on an anonymized output."""

import argparse
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kwsniff.cli.outputs import refuse_loss
from kwsniff.cli.standard_streams import print_message
from kwsniff.errors import OutputError, UsageError
from kwsniff.texts import clean, plural

if TYPE_CHECKING:
    from kwsniff.anonymize.anonymize import Anonymized
    from kwsniff.anonymize.names import Names

_LEAST_KEY: Final = 16
_MOST_KEY: Final = 1 << 20


def add_anonymizing_options(parser: argparse._ActionsContainer) -> None:
    """Add the options to a verb that replaces names."""
    parser.add_argument(
        "--key",
        metavar="FILE",
        help="secret key of the replacements: the same key gives the same names in every capture; created if "
        "missing (default: a random key)",
    )
    parser.add_argument(
        "--map",
        metavar="FILE",
        help="write names and replacements as TSV, readable only by you, to translate names back",
    )


def add_anonymize_option(parser: argparse._ActionsContainer) -> None:
    """Add --anonymize, with its options, to a verb that copies packets."""
    parser.add_argument(
        "--anonymize",
        action="store_true",
        help="replace every name, as kwsniff anonymize; not with --secrets. For opened TLS, "
        "slice what kwsniff anonymize --open-tls writes",
    )
    add_anonymizing_options(parser)


def check_anonymizing(args: argparse.Namespace) -> None:
    """Raises UsageError for options that need or exclude --anonymize."""
    if args.anonymize and args.secrets:
        raise UsageError("--anonymize conflicts with --secrets, which opens what names are in")
    if not args.anonymize and (args.key or args.map):
        raise UsageError("--key and --map need --anonymize")


def read_key(args: argparse.Namespace) -> "Names":
    """The names by the key. Raises UsageError for a key that cannot be read or created."""
    from hashlib import blake2b

    from kwsniff.anonymize.names import KEY_BYTES, Names
    from kwsniff.layout.catalog import load_catalog

    if args.map:
        refuse_loss(args.map, (".tsv",), read=args.captures, force=args.force)
    secret = _read_secret(args.key) if args.key else secrets.token_bytes(KEY_BYTES)
    return Names(blake2b(secret, digest_size=KEY_BYTES).digest(), load_catalog().names)


def _read_secret(name: str) -> bytes:
    path = Path(name)
    try:
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32) + "\n")
        with path.open("rb") as opened:
            secret = opened.read(_MOST_KEY).strip()
    except OSError as error:
        raise UsageError(f"--key: {clean(name)}: {error.strerror or error}") from error
    if len(secret) < _LEAST_KEY:
        raise UsageError(f"--key: {clean(name)} has fewer than {_LEAST_KEY} bytes")
    return secret


def write_map(args: argparse.Namespace, names: "Names") -> None:
    """Writes --map, if it is asked for. Raises OutputError."""
    if not args.map:
        return
    path = Path(args.map)
    hidden = path.parent / f".{secrets.token_hex(8)}.kwsniff"
    try:
        with os.fdopen(
            os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write("name\treplacement\n")
            for name, new in names.list_replacements().items():
                file.write(f"{_escape(name)}\t{_escape(new)}\n")
        hidden.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot write: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            hidden.unlink(missing_ok=True)


def _escape(name: str) -> str:
    """A name in one field: control characters and bytes that are not UTF-8 as escapes."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)


def say_anonymized(done: "Anonymized") -> None:
    """Notes on what was opened, and on what is blank."""
    if done.opened_connections:
        print_message(f"note: {plural(done.opened_connections, 'TLS connection')} opened: plain TCP now")
    if done.blank_packets:
        print_message(f"note: {plural(done.blank_packets, 'packet')} without TCP: only headers are kept")
    if done.blank_messages:
        print_message(
            f"note: {plural(done.blank_messages, 'message')} with parts that no layout explains: zeros"
        )
    if done.undecodable_batches:
        print_message(f"note: compressed batches that cannot be decoded: {done.undecodable_batches:,}")
