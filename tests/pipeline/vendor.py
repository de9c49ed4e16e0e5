"""A vendor's API 9999 as text, and a conversation that uses it, encoded by hand."""

from __future__ import annotations

from pathlib import Path

from tests.traffic.exchange import Exchange
from tests.traffic.messages import fetch, topic_uuid
from tests.traffic.scenes import one_by_one
from tests.traffic.wire import Encoder, sized

KEY = 9999
PASSWORD = "correct horse"  # noqa: S105 - made up
LAYOUT = """\
api 9999 EchoPlan 0-1 flexible 1+
request
    topic_name  string  topic
    password    string  secret  1+
response
    throttle_time_ms  int32  throttle  1+
    topics            []
        topic_id      uuid    topic_id
        name          string  topic
        partitions    []
            partition   int32  partition
            error_code  int16  error
            mood        int8   enum.mood
"""
TEXTS = {
    "9999_echo_plan.layout": LAYOUT,
    "errors.txt": "4242 ECHO_TOO_LOUD final 1.0 the echo is too loud\n",
    "enums.txt": "mood\n    0 calm\n    1 loud\n",
}


def layouts(folder: Path, **changed: str) -> Path:
    """The folder, with some texts changed."""
    folder.mkdir()
    for name, text in (TEXTS | changed).items():
        (folder / name).write_text(text, "utf-8")
    return folder


def echo(version: int, correlation_id: int, *, error: int = 0) -> Exchange:
    """One call about the topic orders, partition 3."""
    flexible = version >= 1
    head = Encoder(False).i16(KEY).i16(version).i32(correlation_id).string("shop-1")
    head.flexible = flexible
    body = Encoder(flexible).string("orders")
    answer = Encoder(flexible).i32(correlation_id).tags()
    if flexible:
        body.string(PASSWORD)
        answer.i32(7)
    head.tags()
    body.tags()

    def partition(number: int) -> None:
        answer.i32(number).i16(error).i8(1).tags()

    def topic(name: str) -> None:
        answer.uuid(topic_uuid(name)).string(name).array([3], partition)
        answer.tags()

    answer.array(["orders"], topic)
    answer.tags()
    request, response = bytes(head.data) + bytes(body.data), bytes(answer.data)
    return Exchange(KEY, version, correlation_id, "shop-1", sized(request), sized(response))


def talk() -> list[Exchange]:
    """Both versions, an error that only the vendor has, then a fetch by the id that 9999 named."""
    return [echo(0, 1), echo(1, 2, error=4242), fetch(13, 3, {"orders": {3: None}})]


def packets() -> list[object]:
    return list(one_by_one(talk()).packets())
