"""``kwsniff decode`` from the outside: one line out for every line in, whatever it is."""

import argparse
import io
import json
import sys

import pytest

from kwsniff.cli import decode
from kwsniff.errors import UsageError

REQUEST = "00120000000000070002" + b"me".hex()


def run(monkeypatch: pytest.MonkeyPatch, text: bytes, *argv: str) -> int:
    parser = argparse.ArgumentParser()
    decode.add_parser(parser.add_subparsers())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    args = parser.parse_args(["decode", *argv])
    result = args.run(args)
    assert isinstance(result, int)
    return result


GOOD = json.dumps({"direction": "request", "hex": REQUEST})
BAD_LINES = {
    "{": "bad_json",
    "[]": "bad_json",
    "\udcff": "bad_json",
    "[" * 100_000: "bad_json",
    '{"direction": "request"}': "bad_hex",
    '{"direction": "request", "hex": "0"}': "bad_hex",
    '{"direction": "request", "hex": "zz"}': "bad_hex",
    '{"direction": "request", "hex": 5}': "bad_hex",
    '{"hex": "00"}': "bad_direction",
    '{"direction": ["request"], "hex": "00"}': "bad_direction",
    '{"direction": "response", "hex": "00", "api_version": 1}': "bad_api_key",
    '{"direction": "response", "hex": "00", "api_key": true, "api_version": 1}': "bad_api_key",
    '{"direction": "response", "hex": "00", "api_key": 1, "api_version": "1"}': "bad_api_version",
    '{"direction": "response", "hex": "00000000", "api_key": 1, "api_version": 1e400}': "bad_api_version",
    '{"direction": "response", "hex": "00000000", "api_key": 99999999999999999999999, "api_version": 0}': (
        "unknown_api"
    ),
    '{"direction": "request", "hex": ""}': "unexpected_end",
}


def test_nothing_on_the_input_stops_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    lines = [line for bad in BAD_LINES for line in (bad, GOOD)]
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    assert run(monkeypatch, text, "--jsonl", "-") == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(answers) == len(lines)
    assert [answer["error"]["code"] for answer in answers[::2]] == list(BAD_LINES.values())
    assert all(answer["error"] is None for answer in answers[1::2])
    assert all(
        set(answer) == {"api_key", "api_version", "header", "body", "unknown_tags", "error"}
        for answer in answers
    )


def test_response_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    line = {"direction": "response", "hex": "00000007" + "0000" + "00000000", "api_key": 18, "api_version": 0}
    run(monkeypatch, json.dumps(line).encode(), "--jsonl")
    assert json.loads(capsys.readouterr().out) == {
        "api_key": 18,
        "api_version": 0,
        "header": {"correlation_id": 7},
        "body": {"error_code": 0, "api_keys": []},
        "unknown_tags": [],
        "error": None,
    }


def test_tree_of_one_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, b"", REQUEST) == 0
    assert capsys.readouterr().out.startswith("ApiVersions request v0 (key 18), 12 bytes\n")
    assert run(monkeypatch, REQUEST[:-2].encode(), "-") == 1
    assert "! unexpected_end at byte 8 in header:/client_id" in capsys.readouterr().out


def test_response_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    argv = ("--response", "--api", "api_versions", "--version", "0", "--json", "00000007 0000 00000000")
    assert run(monkeypatch, b"", *argv) == 0
    assert json.loads(capsys.readouterr().out)["header"] == {"correlation_id": 7}


@pytest.mark.parametrize("argv", [("xyz",), ("--response", "00"), ("--api", "fetch", "00")])
def test_bad_usage_says_what_to_try(monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]):
    with pytest.raises(UsageError):
        run(monkeypatch, b"", *argv)


def test_schema_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    lines = [
        {"version": 0, "hex": "00000001000161ffffffff"},
        {"version": 9, "hex": "00000000" + "ffffffff" + "00000000" + "00000005" + "ffff" + "0102"},
        {"version": 0, "hex": "000000010001"},
        {"hex": "00"},
        {"version": -1, "hex": "00"},
    ]
    text = "\n".join(json.dumps(line) for line in lines).encode()
    assert run(monkeypatch, text, "--jsonl", "--schema", "ConsumerProtocolSubscription", "-") == 0
    got = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert got[0] == {
        "version": 0,
        "body": {"topics": ["a"], "user_data": None},
        "unknown_tags": [],
        "error": None,
    }
    # Newer than known: read as the newest, what follows is left alone.
    assert got[1]["error"] is None
    assert got[1]["body"]["generation_id"] == 5
    assert got[2]["error"] == {"code": "unexpected_end", "path": "/topics/0", "offset": 4}
    assert got[3]["error"]["code"] == "bad_version"
    assert got[4]["error"]["code"] == "unknown_version"


def test_unknown_schema_names_its_neighbours(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UsageError, match="OffsetCommitValue"):
        run(monkeypatch, b"", "--jsonl", "--schema", "OffsetCommitValues", "-")


def test_record_set_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert run(monkeypatch, b'{"hex": ""}\n{"hex": "zz"}\n{"hex": "00"}', "--jsonl", "--records", "-") == 0
    got = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert got[0] == {"batches": [], "valid_bytes": 0, "trailing_bytes": 0, "control": [], "error": None}
    assert got[1]["error"]["code"] == "bad_hex"
    assert (got[2]["trailing_bytes"], got[2]["error"]) == (1, None)


def test_record_set_that_decompresses_to_more_than_the_limit_stays_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from tests.traffic.records import batch

    values = [b"a" * 1000] * 100
    line = json.dumps({"hex": batch(values, gzipped=True).hex()}).encode()
    for limit, records, code in (("99_999", 0, "longer_than_limit"), ("200_000", 100, None)):
        bound = f"decompressed_bytes={limit.replace('_', '')}"
        assert run(monkeypatch, line, "--jsonl", "--records", "--limit", bound, "-") == 0
        got = json.loads(capsys.readouterr().out)
        assert (got["error"] and got["error"]["code"]) == code
        assert sum(len(one["records"]) for one in got["batches"]) == records


def test_what_is_inside_bytes_fields_is_in_the_json_but_not_in_json_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from tests.view.wrapped import join_group

    data = join_group("sr", b'{"a": 1}').hex()
    assert run(monkeypatch, b"", "--json", data) == 0
    whole = json.loads(capsys.readouterr().out)
    assert [inner["facts"] for inner in whole.pop("inside")] == [{"a": 1}]
    line = json.dumps({"direction": "request", "hex": data}).encode()
    assert run(monkeypatch, line, "--jsonl", "-") == 0
    assert json.loads(capsys.readouterr().out) == whole
