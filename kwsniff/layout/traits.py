"""The traits at the end of an API's first line: the purpose of an API, apart from its messages.

trait          arguments                meaning
internal                                only brokers and controllers use it, clients do not
shared         [VERSIONS]               both clients and brokers use it
rendezvous                              the response waits for requests of the other group members
fallback                                the response to an unsupported version has version 0 (KIP-511)
tokens         VERSIONS                 after its response both sides send bare tokens (SaslHandshake)
unnumbered     VERSIONS                 brokers of 0.8.2 respond with correlation id 0
wraps                                   contains another request or response (KIP-590)
sasl                                    authenticates the connection (SaslHandshake, SaslAuthenticate)
controller                              a broker forwards it to the controller (KIP-590)
question                                asks for what a broker knows, as administrators and monitors do
records        produced|fetched         counted as such by the aggregates
records        acquired|acknowledged    of a share group (KIP-932)
topics         created|deleted|extended changes topics; a quota limits these calls (KIP-599)
group          ROLE                     of a member of a group: join, sync, heartbeat, leave
group          epoch KIND               a heartbeat with all these roles; KIND: consumer, share, streams
describe       KIND                     describes groups; KIND: classic, or as above
offsets        committed|listed         of a group in its request; of the log in its response
cluster        brokers|versions         its response has the cluster's brokers, or the supported versions
cluster        coordinators             its response has the coordinators of groups and transactions
acl            OPERATION                what a principal needs: describe, read, write, create, delete
detail         request|response|both    messages that the timelines decode fully
transaction    ROLE [VERSIONS]          produce, init, add_partitions, add_offsets, commit_offsets, end
"""

from typing import Final

from kwsniff.layout.model import EVERY, OPEN, Traits, Versions
from kwsniff.layout.tokens import fail, read_versions

CLASSIC: Final = "classic"
GROUP_ROLES: Final = ("join", "sync", "heartbeat", "leave", "epoch")
GROUP_KINDS: Final = ("consumer", "share", "streams")
TRANSACTION_ROLES: Final = ("produce", "init", "add_partitions", "add_offsets", "commit_offsets", "end")
PRODUCED: Final = "produced"
FETCHED: Final = "fetched"
RECORDS: Final = (PRODUCED, FETCHED)
"""What the aggregates count."""
ACQUIRED: Final = "acquired"
ACKNOWLEDGED: Final = "acknowledged"
BROKERS: Final = "brokers"
VERSIONS: Final = "versions"
COORDINATORS: Final = "coordinators"
CLUSTER: Final = (BROKERS, VERSIONS, COORDINATORS)
COMMITTED: Final = "committed"
LISTED: Final = "listed"
OFFSETS: Final = (COMMITTED, LISTED)
TOPICS: Final = ("created", "deleted", "extended")
ACL: Final = ("describe", "read", "write", "create", "delete")
DETAILS: Final = ("request", "response", "both")
_FLAGS: Final = ("internal", "rendezvous", "fallback", "wraps", "sasl", "controller", "question")
_CHOICES: Final = {
    "records": (*RECORDS, ACQUIRED, ACKNOWLEDGED),
    "offsets": OFFSETS,
    "cluster": CLUSTER,
    "detail": DETAILS,
    "topics": TOPICS,
    "describe": (CLASSIC, *GROUP_KINDS),
    "acl": ACL,
}
_WORDS: Final = (
    *_FLAGS,
    "shared",
    "tokens",
    "unnumbered",
    *_CHOICES,
    "group",
    "transaction",
)


def read_traits(file: str, words: list[str]) -> Traits:
    """The words after the versions. Raises LayoutError."""
    found: dict[str, object] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if word in found:
            fail(file, 1, f"'{word}' is given twice")
        if word in _FLAGS:
            found[word] = True
        elif word in ("shared", "tokens", "unnumbered"):
            if word != "shared" and not _has_versions(left):
                fail(file, 1, f"'{word}' needs the versions of the responses it describes")
            found[word] = _versions(file, left)
        elif word in _CHOICES:
            found[word] = _one_of(file, word, left, _CHOICES[word])
        elif word == "group":
            role = found[word] = _one_of(file, word, left, GROUP_ROLES)
            found["group_kind"] = _one_of(file, role, left, GROUP_KINDS) if role == "epoch" else CLASSIC
        elif word == "transaction":
            found[word] = _one_of(file, word, left, TRANSACTION_ROLES)
            found["transaction_versions"] = _versions(file, left)
        else:
            fail(file, 1, f"unknown word '{word}' (expected: flexible N+, {', '.join(_WORDS)})")
    return Traits(**found)  # type: ignore[arg-type]


def _has_versions(words: list[str]) -> bool:
    return bool(words) and words[0][0].isdigit()


def _versions(file: str, left: list[str]) -> Versions:
    return read_versions(file, left.pop(0), 1, OPEN) if _has_versions(left) else EVERY


def _one_of(file: str, word: str, left: list[str], known: tuple[str, ...]) -> str:
    given = left.pop(0) if left else ""
    if given not in known:
        fail(file, 1, f"unknown word '{given}' after '{word}' (expected: {', '.join(known)})")
    return given
