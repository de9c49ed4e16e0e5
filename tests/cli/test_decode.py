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
