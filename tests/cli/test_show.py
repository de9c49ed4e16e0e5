"""``kwsniff show``: recorded captures against what the brokers counted, scripted ones against the script."""

import gzip
import io
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.main import run
from tests.cli.shown import CAPTURES, PAGE, about, headings, lines, messages, page, recorded, written
from tests.cli.terminal import run_on_terminal
from tests.traffic.exchange import Exchange
from tests.traffic.groups import sasl_authenticate, sasl_handshake
from tests.traffic.messages import metadata, produce
from tests.traffic.records import batch
from tests.traffic.scenes import one_by_one, pipelined, two_clients
from tests.traffic.tcp import MILLISECOND
from tests.traffic.wire import sized
from tests.view.wrapped import envelope

NAMES = sorted(path.parent.name for path in CAPTURES.glob("*/about.toml"))
# The mock's log is whole; Kafka's own brokers do not log everything.
MOCKED = [name for name in NAMES if "mock" in about(name)["broker"]["name"]]

TOKEN = b"\0ann\0correct horse battery"


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return written(tmp_path / "shop.pcap", two_clients().packets())


@pytest.mark.parametrize("name", MOCKED)
def test_calls_are_those_the_brokers_counted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = messages(capsys, recorded(name))
    calls = {one["call_id"]: one["api_name"] for one in found}
    assert Counter(calls.values()) == about(name)["requests"]
    assert {one["kind"] for one in found} == {"request", "response"}


@pytest.mark.parametrize("name", [name for name in MOCKED if name != "large_messages"])
def test_requests_are_those_the_brokers_counted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    requests = messages(capsys, recorded(name), "--request-only")
    assert Counter(one["api_name"] for one in requests) == about(name)["requests"]
    assert {one["kind"] for one in requests} == {"request"}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", NAMES)
def test_calls_are_those_of_the_tables(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables are compared with the brokers' logs and with tshark, call by call: see tests/pipeline."""
    rows = {row["call_id"]: row for row in kwsniff.analyze(recorded(name)).api_calls.to_pylist()}
    shown = [one for one in messages(capsys, recorded(name)) if one["call_id"] is not None]
    for one in shown:
        row, side = rows[one["call_id"]], one["direction"]
        assert (one["api_key"], one["status"], one["reason"]) == (
            row["api_key"],
            row["status"],
            row["reason"],
        )
        assert (one["first_frame"], one["bytes"]) == (row[f"{side}_frame"], row[f"{side}_bytes"])
    # Also the first request of a connection, which a snaplen cuts before anything says that it is Kafka's.
    assert Counter(one["direction"] for one in shown) == Counter(
        side
        for row in rows.values()
        for side in ("request", "response")
        if row[f"{side}_frame"] is not None and row["status"] != "response_only"
    )


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", NAMES)
def test_text_and_json_show_the_same_messages(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = lines(capsys, recorded(name))
    found = messages(capsys, recorded(name))
    sides = [re.match(r"  (request|response), frames? (\d+)", line) for line in text]
    assert [(side[1], int(side[2])) for side in sides if side] == [
        (one["direction"], one["first_frame"]) for one in found
    ]
    assert text.count("") == len({one["call_id"] for one in found})


@pytest.mark.parametrize("name", [name for name in MOCKED if name != "large_messages"])
def test_whole_captures_decode_whole(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Apart from what the recorded broker is known to get wrong: see captures/README.md."""
    for one in messages(capsys, recorded(name)):
        stray = one["error"] and one["error"]["code"] == "bytes_left_over" and one["direction"] == "response"
        refused = one["api_name"] == "ApiVersions" and one["direction"] == "response"
        assert one["error"] is None or stray or refused, one
        assert not one["torn"]
        for inner in one["inside"]:
            assert inner["error"] is None
            assert inner["note"] is None or "guessed" in inner["note"]


def test_recorded_record_sets_are_shown_with_their_codec(capsys: pytest.CaptureFixture[str]) -> None:
    codecs: Counter[str] = Counter()
    for one in messages(capsys, recorded("codecs"), "--api", "produce", "--request-only"):
        for inner in one["inside"]:
            for found in inner["records"]["batches"]:
                codecs[found["compression"]] += len(found["records"])
    assert set(codecs) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert codecs.total() == about("codecs")["report"]["produced"]


def test_a_call_is_shown_with_frames_times_and_sizes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call = metadata(9, 5, ["orders"])
    assert call.response is not None
    shown = lines(capsys, written(tmp_path / "one.pcap", one_by_one([call]).packets()))
    # The scene: three packets of handshake, the request after 10 ms, the response 2 ms later.
    assert shown[0].startswith("call 4000: Metadata v9 (key 3), connection 1, ")
    assert shown[0].endswith(", answered in 2 ms")
    assert shown[2] == f"  request, frame 4, 2023-11-14 22:13:20.010000000 UTC, {len(call.request)} bytes"
    answer = f"  response, frame 5, 2023-11-14 22:13:20.012000000 UTC, {len(call.response)} bytes"
    assert answer in shown
    assert "      correlation_id: 5" in shown
    assert shown[-1] == ""


def test_frames_over_several_segments_have_their_first_and_last_frame(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call = produce(9, 5, {"orders": {0: batch([b"x" * 1000] * 3)}})
    packets = one_by_one([call], mss=1000).packets()
    carrying = [number for number, packet in enumerate(packets, 1) if packet.payload and packet.from_client]
    assert len(carrying) == 4
    shown = lines(capsys, written(tmp_path / "big.pcap", packets))
    assert shown[2].startswith(f"  request, frames {carrying[0]} to {carrying[-1]}, ")


def test_the_json_has_what_decode_has_and_where_it_was(shop: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = messages(capsys, shop, "--api", "heartbeat")
    assert [one["direction"] for one in found] == ["request", "response"]
    response = found[1]
    assert response["body"] == {"throttle_time_ms": 0, "error_code": 27}
    assert response["header"] == {"correlation_id": 5}
    assert response["unknown_tags"] == []
    assert response["error"] is None
    assert (response["api_key"], response["api_name"], response["api_version"]) == (12, "Heartbeat", 4)
    assert (response["client_address"], response["client_port"]) == ("10.1.0.8", 50_001)
    assert (response["broker_address"], response["broker_port"]) == ("10.1.0.92", 9092)
    assert response["latency_ns"] == MILLISECOND
    assert (response["status"], response["reason"]) == ("answered", None)
    assert response["first_time"].endswith("Z")
    assert response["capture"] == shop


def test_calls_come_in_the_order_of_their_requests_within_a_small_capture(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    packets = pipelined().packets()
    shown = headings(capsys, written(tmp_path / "pipelined.pcap", packets))
    carrying = [number for number, packet in enumerate(packets, 1) if packet.payload and packet.from_client]
    numbers = [int(line.split()[1].rstrip(":")) for line in shown]
    assert len(numbers) == 20
    assert numbers == sorted(set(numbers))
    assert {number // 1000 for number in numbers} == set(carrying)
    for frame in carrying:  # the calls that one packet brings are counted from 0
        of_frame = [number % 1000 for number in numbers if number // 1000 == frame]
        assert of_frame == list(range(len(of_frame)))


# -- what is hidden ----


def secret_calls() -> list[Exchange]:
    inside = sasl_authenticate(2, 7, TOKEN, b"").request[4:]
    wrapped = sized(envelope(inside, None))
    return [
        metadata(9, 1, ["orders"]),
        sasl_handshake(1, 2, "PLAIN"),
        sasl_authenticate(1, 3, TOKEN, b""),
        sasl_authenticate(2, 4, TOKEN, b"", error=58),
        produce(9, 5, {"orders": {0: batch([b"4111111111111111"])}}),
        Exchange(58, 0, 9, "me", wrapped, None),
    ]


@pytest.mark.parametrize("form", ["--json", "--hexdump", None])
def test_secrets_and_records_are_shown_only_when_asked_for(
    form: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capture = written(tmp_path / "secrets.pcap", one_by_one(secret_calls()).packets())
    arguments = [capture] if form is None else [capture, form]
    # As text, base64 and hex.
    secret = ["correct horse", "AGFubgBjb3JyZWN0", TOKEN.hex()[:24], "61 6e 6e 00 63 6f"]
    record = ["4111111111111111", "NDExMTExMTEx", "34 31 31 31"]
    shown = "\n".join(lines(capsys, *arguments))
    assert not [word for word in secret + record if word in shown]
    assert "SaslAuthenticate" in shown
    shown = "\n".join(lines(capsys, *arguments, "--secrets"))
    assert [word for word in secret if word in shown]
    assert not [word for word in record if word in shown]
    shown = "\n".join(lines(capsys, *arguments, "--payload"))
    assert not [word for word in secret if word in shown]
    assert [word for word in record if word in shown]


def test_bare_sasl_tokens_are_shown_as_such_and_redacted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = Exchange(-1, -1, 0, None, sized(TOKEN), sized(b""))
    calls = [sasl_handshake(0, 1, "PLAIN"), token, metadata(9, 2, ["orders"]), metadata(9, 3, ["orders"])]
    capture = written(tmp_path / "tokens.pcap", one_by_one(calls).packets())
    shown = lines(capsys, capture)
    assert "    <redacted, 26 bytes>" in shown
    assert "correct horse" not in "\n".join(shown)
    found = messages(capsys, capture)
    assert {one["kind"] for one in found} == {"request", "response", "sasl_token"}
    tokens = [one for one in found if one["kind"] == "sasl_token"]
    assert {one["token"] for one in tokens} <= {"<redacted, 26 bytes>", "<redacted, 0 bytes>"}
    assert TOKEN.hex() in "\n".join(lines(capsys, capture, "--secrets"))


# -- ways in and out ----


def test_standard_input_gzip_and_directories(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = lines(capsys, shop)
    packed = tmp_path / "packed" / "shop.pcap.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(Path(shop).read_bytes()))
    assert lines(capsys, str(packed)) == plain
    assert lines(capsys, str(packed.parent)) == plain
    with Path(shop).open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        assert lines(capsys, "-") == plain


def test_several_captures_name_the_file_of_a_message(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = written(tmp_path / "other.pcap", two_clients("10.2.0.").packets())
    shown = lines(capsys, shop, other)
    assert sum(f"of {other}" in line for line in shown) == sum(f"of {shop}" in line for line in shown) > 0


def test_what_is_no_capture_is_exit_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("no capture")
    assert run(["show", str(tmp_path / "text")]) == 2
    assert "is not a capture" in capsys.readouterr().err


def test_a_capture_that_ends_early_is_shown_up_to_there_with_a_note(
    shop: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(shop).read_bytes()[:-5])
    assert run(["show", str(cut)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("call 7000: ApiVersions")
    assert "ends inside a packet" in captured.err


def test_a_capture_without_kafka_has_nothing_to_show_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = written(tmp_path / "empty.pcap", [])
    assert run(["show", empty]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "kwsniff: note: the captures have no packets\n"


def test_requests_that_wait_too_long_are_shown_without_their_response(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = written(tmp_path / "pipelined.pcap", pipelined(calls=240).packets())
    whole = messages(capsys, capture)
    monkeypatch.setattr("kwsniff.sources.files.BUFFER_BYTES", 512)
    apart = messages(capsys, capture, "--limit", "in_flight_bytes_total=8000")
    assert len(apart) == len(whole) == 480
    place = ("call_id", "direction", "first_frame", "body")
    assert sorted(str([one[name] for name in place]) for one in apart) == sorted(
        str([one[name] for name in place]) for one in whole
    )
    assert [one["direction"] for one in apart] != [one["direction"] for one in whole]


def test_a_terminal_gets_colours_and_no_control_characters_of_the_wire(tmp_path: Path) -> None:
    evil = metadata(9, 5, ["\x1b[31mred\x07", "\x1b]0;title\x07"])
    capture = written(tmp_path / "evil.pcap", one_by_one([evil]).packets())
    size = {"TERM": "xterm-256color", "COLUMNS": "200"}
    status, shown = run_on_terminal("show", capture, environment=size)
    assert status == 0
    assert "\x1b[1mcall 4000" in shown
    assert r"\x1b]0;title" in shown
    assert "\x1b]0;" not in shown
    assert "\x07" not in shown


def test_the_page_shows_what_the_command_shows() -> None:
    text = PAGE.read_text("utf-8")
    assert text.count("$ kwsniff show ") == 3
    assert page() == text, "run: python -m tests.cli.shown"


@pytest.mark.parametrize(("key", "version", "name"), [(3, 14, "Metadata"), (501, 2, "unknown api")])
def test_versions_and_apis_that_are_not_known_are_paired_and_closed(
    key: int, version: int, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + (8).to_bytes(4, "big") + b"\0\2me\0"
    closed = Exchange(key, version, 8, "me", sized(head + b"opaque"), sized(b"\0\0\0\x08\0opaque"))
    calls = [metadata(9, 7, ["orders"]), closed, metadata(9, 9, ["orders"])]
    packets = one_by_one(calls).packets()
    capture = written(tmp_path / "newer.pcap", packets)
    asked = [number for number, packet in enumerate(packets, 1) if packet.payload and packet.from_client]
    shown = headings(capsys, capture)
    assert shown[1].startswith(f"call {asked[1]}000: {name} v{version} (key {key}), ")
    assert "answered in 2 ms" in shown[1]
    request, response = messages(capsys, capture, "--api", str(key), "--call", f"{asked[1]}000")
    assert request["header"]["client_id"] == "me"
    assert request["header"]["correlation_id"] == response["header"]["correlation_id"] == 8
    assert request["body"] is response["body"] is None
    assert request["error"]["code"] == ("unknown_version" if key == 3 else "unknown_api")


def test_an_unknown_error_code_is_shown_as_its_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    call = produce(9, 5, {"orders": {0: batch([b"x"])}}, errors={("orders", 0): 999})
    capture = written(tmp_path / "code.pcap", one_by_one([call]).packets())
    assert "              error_code: 999  unknown error code" in lines(capsys, capture, "--error", "999")


def test_one_half_of_the_calls_can_be_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    capture = written(tmp_path / "halves.pcap", one_by_one([metadata(9, 5, ["orders"])]).packets())
    assert not any("response," in line for line in lines(capsys, capture, "--request-only"))
    assert not any("request," in line for line in lines(capsys, capture, "--response-only"))
