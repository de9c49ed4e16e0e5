"""What may follow a conversation, and what its acknowledgements may say."""

from __future__ import annotations

from dataclasses import replace

from tests.pipeline.segments import ACK, FIN, RST, Segment, ahead

MILLISECOND = 1_000_000


def endings(segments: list[Segment], client: bytes) -> dict[str, list[Segment]]:
    """What may follow a conversation that stands where these segments leave it, everything acknowledged."""
    last = {
        side: next(s for s in reversed(segments) if (s.ends[0] == client) == side) for side in (True, False)
    }
    at = {True: last[True].end, False: last[False].end}
    for segment in segments:
        side = segment.ends[0] == client
        if ahead(segment.end, at[side]) > 0:
            at[side] = segment.end
    time = max(segment.time_ns for segment in segments)

    def says(side: bool, flags: int, more: int = 0, ack: int = 0) -> Segment:
        made = last[side].bare(at[side] + more, at[not side] + ack if flags & ACK else 0, flags)
        return replace(made, time_ns=time + MILLISECOND)

    return {
        "acknowledged": [says(True, ACK)],
        "client FIN": [says(True, FIN | ACK)],
        "both FINs": [says(True, FIN | ACK), says(False, FIN | ACK, 0, 1), says(True, ACK, 1, 1)],
        "broker FIN first": [says(False, FIN | ACK), says(True, FIN | ACK, 0, 1), says(False, ACK, 1, 1)],
        "client RST": [says(True, ACK), says(True, RST)],
        "client RST that acknowledges": [says(True, RST | ACK)],
        "broker RST": [says(True, ACK), says(False, RST)],
        "broker RST that acknowledges": [says(True, ACK), says(False, RST | ACK)],
        "keepalives": [says(side, ACK, -1 if side else 0) for _ in range(12) for side in (True, False)],
        "idle": [replace(says(True, ACK), time_ns=time + number * 7_200 * 10**9) for number in (0, 1)],
    }


def selective(segments: list[Segment], seq: int, client: bytes, *, of_client: bool) -> list[Segment]:
    """The same where the receiver of the message at this number had missed the byte before it, behind the
    place of the capture: it has the message all the same, and says so. A broker that answers has all that
    was asked until then."""
    out: list[Segment] = []
    has_all = False
    for segment in segments:
        took = ahead(segment.ack, seq)
        is_receivers = (segment.ends[0] == client) != of_client
        has_all = has_all or (of_client and is_receivers and took > 0 and bool(segment.payload))
        if has_all or not is_receivers or not segment.flags & ACK or took < 0:
            out.append(segment)
        elif took == 0:
            out.append(segment.acknowledging(seq - 1))
        else:
            out.append(segment.acknowledging(seq - 1, (seq, segment.ack)))
    return out
