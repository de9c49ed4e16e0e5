"""Captures to one file without names: reads them twice, once for packets and once for messages."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import IO, Any, Final

from kwsniff.anonymize.capture import End, Place, RewrittenPackets, Streams, copy_out
from kwsniff.anonymize.messages import Messages
from kwsniff.anonymize.names import Names
from kwsniff.anonymize.opened_records import OpenedRecords, open_records
from kwsniff.anonymize.opened_streams import OpenedStreams
from kwsniff.anonymize.packets import Packets
from kwsniff.anonymize.unread import Unread
from kwsniff.layout.catalog import load_catalog
from kwsniff.limits import Limits
from kwsniff.sources.files import CaptureFile
from kwsniff.sources.slices import Wanted, copy_packets
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import KeyLog
from kwsniff.temporary import temporary_folder
from kwsniff.view.reader import CallReader

_MAPPED: Final = bytes(10) + b"\xff\xff"
_PREFIX_BYTES: Final = 4


@dataclass(slots=True)
class Anonymized:
    """What an output has: packets and messages, and what is blank in it."""

    packets: int = 0
    messages: int = 0
    blank_packets: int = 0
    """Packets that are not TCP, or not understood."""
    blank_messages: int = 0
    """Messages that are blank in part, or that no packet carries."""
    undecodable_batches: int = 0
    """Compressed batches that could not have the same size again."""
    opened_connections: int = 0
    """TLS connections that are plain TCP now."""


def anonymize(
    reader: CallReader,
    wanted: Sequence[Wanted],
    names: Names,
    file: IO[bytes],
    *,
    times: TimeRange,
    limits: Limits,
    open_tls: KeyLog = False,
) -> Anonymized:
    """Writes the wanted packets of a reader's captures without names.

    `open_tls`: key logs, as the reader has them, whose connections become plain TCP.
    Raises CaptureError for files that are not captures, OutputError if temporary files cannot be written.
    """
    done = Anonymized()
    if times:
        with CaptureFile(reader.captures[0]) as first:
            times.resolve(reader.captures, first)
    with temporary_folder() as folder:
        place = Path(folder)
        with (place / "packets").open("w+b") as packets:
            with (place / "payload").open("wb") as payload, (place / "rows").open("wb") as rows:
                out = RewrittenPackets(packets, Packets(names.addresses), payload, rows)
                for out.capture, (name, each) in enumerate(zip(reader.captures, wanted, strict=True)):
                    if not each.is_empty:
                        copy_packets(name, each, out, since=times.since, until=times.until)
            done.packets, done.blank_packets = out.packets, out.blanked
            files = place / "payload", place / "rows"
            if open_tls is not False:
                opened = place / "opened payload", place / "opened rows"
                with closing(_open_records(reader, open_tls, times, limits, place)) as records:
                    if not records.is_empty:
                        with closing(Streams(packets, *files, out.streams)) as streams:
                            done.opened_connections = OpenedStreams(streams, records, packets).write(*opened)
                        files = opened
            with closing(Streams(packets, *files, out.streams)) as streams:
                _write_messages(reader, names, limits, streams, done)
                streams.sign()
            if all(each.everything for each in wanted):
                out.end(reader.dropped, reader.broken)
            copy_out(packets, file)
    return done


def _open_records(
    reader: CallReader, keylog: KeyLog, times: TimeRange, limits: Limits, place: Path
) -> OpenedRecords:
    records = OpenedRecords(place)
    open_records(
        reader.captures, keylog, records, catalog=load_catalog(), ports=reader.ports.asked, limits=limits,
        times=times,
    )  # fmt: skip
    return records


def _write_messages(
    reader: CallReader, names: Names, limits: Limits, streams: Streams, done: Anonymized
) -> None:
    catalog = load_catalog()
    messages, unread = Messages(names, catalog, limits), Unread(streams, names, catalog, limits)
    for call in reader.calls():
        for packet, new in messages.replace(call):
            prefix = (packet["length"] - _PREFIX_BYTES & 0xFFFFFFFF).to_bytes(_PREFIX_BYTES, "big")
            client, broker = _end(packet, "client"), _end(packet, "broker")
            source, target = (broker, client) if packet["direction"] else (client, broker)
            place = Place(
                source, target, packet["connection_id"], packet["direction"], packet["capture"],
                packet["first_frame"], packet["stream_offset"],
            )  # fmt: skip
            found = streams.write(place, prefix + packet["data"], prefix + new)
            done.messages += 1
            done.blank_messages += found is None
            if found is not None:
                stream, begin = found
                unread.add_written(stream, begin, begin + packet["length"], asks=not packet["direction"])
    unread.write((number, ends) for ends, number in streams.numbers.items())
    done.blank_messages += messages.blanked
    done.undecodable_batches = messages.records.undecodable


def _end(packet: dict[str, Any], side: str) -> End:
    address = ip_address(packet[f"{side}_address"])
    mapped = _MAPPED if isinstance(address, IPv4Address) else b""
    return mapped + address.packed, packet[f"{side}_port"]
