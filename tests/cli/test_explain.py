"""``kwsniff explain`` against what the protocol guide and KIPs say."""

import json

import pytest

from kwsniff.cli import main


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main.run(["explain", *words]) == 0
    return capsys.readouterr().out


def names(lines: list[dict[str, object]]) -> list[object]:
    return [line["name"] for line in lines]


def test_both_directions_of_a_flexible_version(capsys: pytest.CaptureFixture[str]):
    facts = json.loads(explained(capsys, "heartbeat", "4", "--json"))
    assert (facts["api_key"], facts["name"], facts["api_version"]) == (12, "Heartbeat", 4)
    request = facts["request"]
    assert names(request["header"]) == [
        "request_api_key",
        "request_api_version",
        "correlation_id",
        "client_id",
        "",
    ]
    # client_id is the one string that keeps its int16 length in a flexible header (KIP-482).
    assert request["header"][3]["encoding"] == "string, int16 length"
    assert names(request["body"]) == ["group_id", "generation_id", "member_id", "group_instance_id", ""]
    assert request["body"][3]["null"] is True
    assert names(facts["response"]["body"]) == ["throttle_time_ms", "error_code", ""]
    assert facts["releases"][0] == "2.4.0"


def test_text_of_a_layout(capsys: pytest.CaptureFixture[str]):
    text = explained(capsys, "ControlledShutdown", "v0")
    lines = text.splitlines()
    assert lines[0] == "ControlledShutdown v0 (key 7), Kafka 1.0.0 to 3.9.2"
    start = lines.index("request: int32 size, then")
    fields = [line.split()[:2] for line in lines[start + 1 : start + 7] if line.strip()]
    assert fields == [
        ["header"],
        ["request_api_key", "int16"],
        ["request_api_version", "int16"],
        ["correlation_id", "int32"],
        ["body"],
        ["broker_id", "int32"],
    ]


def test_an_api_without_a_version_lists_its_versions_and_releases(capsys: pytest.CaptureFixture[str]):
    lines = explained(capsys, "fetch").splitlines()
    assert lines[0] == "Fetch (key 1), flexible from 12"
    assert lines[1].split() == ["v0", "classic", "0.10.0.0", "to", "3.9.2"]
    assert lines[13].split() == ["v12", "flexible", "2.7.0", "on"]


@pytest.mark.parametrize("which", ["6", "NOT_LEADER_OR_FOLLOWER", "not_leader_or_follower"])
def test_error_by_code_and_name(capsys: pytest.CaptureFixture[str], which: str):
    assert explained(capsys, "error", which).startswith("error 6 NOT_LEADER_OR_FOLLOWER\n")


def test_error_minus_one(capsys: pytest.CaptureFixture[str]):
    facts = json.loads(explained(capsys, "error", "-1", "--json"))
    assert (facts["code"], facts["name"], facts["retriable"]) == (-1, "UNKNOWN_SERVER_ERROR", False)


def test_an_error_is_explained_with_its_cause_its_settings_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
):
    said = " ".join(explained(capsys, "error", "26").split())
    assert "usual cause: the member asks for a session timeout that the broker does not" in said
    assert "settings of the client: session.timeout.ms" in said
    assert "settings of the broker: group.min.session.timeout.ms, group.max.session.timeout.ms" in said
    assert "Set session.timeout.ms of the client between" in said
    usual = json.loads(explained(capsys, "error", "26", "--json"))["usual"]
    assert usual["settings"]["client"] == ["session.timeout.ms"]
    assert usual["asked"] == ["timeout_ms", "session.timeout.ms"]
    assert json.loads(explained(capsys, "error", "0", "--json"))["usual"] is None


def test_schema_shows_its_tagged_field(capsys: pytest.CaptureFixture[str]):
    facts = json.loads(explained(capsys, "OffsetCommitValue", "4", "--json"))
    assert facts["header"] == []
    (tagged,) = [line for line in facts["body"] if line["tag"] is not None]
    assert (tagged["name"], tagged["tag"]) == ("topic_id", 0)


def test_release(capsys: pytest.CaptureFixture[str]):
    apis = json.loads(explained(capsys, "release", "4.0.0", "--json"))["apis"]
    by_key = {api["api_key"]: (api["min_version"], api["max_version"]) for api in apis}
    # KIP-896: 4.0 dropped Produce 0-2 and the four inter-broker APIs of ZooKeeper clusters.
    assert by_key[0][0] == 3
    assert not {4, 5, 6, 7} & set(by_key)


@pytest.mark.parametrize("subject", ["apis", "errors", "schemas", "releases"])
def test_lists(capsys: pytest.CaptureFixture[str], subject: str):
    text = explained(capsys, subject)
    facts = json.loads(explained(capsys, subject, "--json"))[subject]
    assert len(text.splitlines()) == len(facts) > 20


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("ftch",), "did you mean Fetch"),
        (("error", "NOT_LEADER"), "did you mean NOT_LEADER_OR_FOLLOWER?"),
        (("error", "ZZZZ"), "see kwsniff explain errors"),
        (("fetch", "99"), "versions 0 to 18, not 99"),
        (("fetch", "x"), "give a number"),
        (("error", "9999"), "kwsniff explain errors"),
        (("error", "not_leader_for_follower"), "NOT_LEADER_OR_FOLLOWER"),
        (("release", "4.0"), "did you mean 4.0.0 or 4.0.1 or 4.0.2?"),
        (("OffsetCommitValue", "9"), "has versions 0, 1, 2, 3, 4, not 9"),
    ],
)
def test_what_is_not_known_says_what_to_try(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], hint: str
):
    assert main.run(["explain", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert hint in error
