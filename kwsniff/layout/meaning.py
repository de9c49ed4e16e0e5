"""Meanings of fields, apart from their encoding: the closed list of words of a layout's third column.

The number of a meaning is a byte in every op of a program and is compiled into the core; never reused.
"""

from enum import IntEnum
from typing import Final


class Meaning(IntEnum):
    """Meaning of a field. The lower-case member name is the word used in layout files."""

    NONE = 0
    TOPIC = 1
    TOPIC_ID = 2
    PARTITION = 3
    ERROR = 4
    ERROR_MESSAGE = 5
    THROTTLE = 6
    GROUP = 7
    TRANSACTIONAL_ID = 8
    MEMBER = 9
    GENERATION = 10
    ACKS = 11
    RECORDS = 12
    CLIENT_ID = 13
    CORRELATION_ID = 14
    API_KEY = 15
    API_VERSION = 16
    SOFTWARE_NAME = 17
    SOFTWARE_VERSION = 18
    SASL_MECHANISM = 19
    SECRET = 20
    PRODUCER_ID = 21
    PRODUCER_EPOCH = 22
    OFFSET = 23
    HIGH_WATERMARK = 24
    LAST_STABLE_OFFSET = 25
    LOG_START_OFFSET = 26
    MAX_WAIT = 27
    MIN_BYTES = 28
    MAX_BYTES = 29
    ISOLATION = 30
    SESSION_ID = 31
    SESSION_EPOCH = 32
    DURATION = 33
    TIMESTAMP = 34
    LEADER_EPOCH = 35
    BROKER = 36
    HOST = 37
    PORT = 38
    CLUSTER_ID = 39
    PROTOCOL_TYPE = 40
    PROTOCOL_NAME = 41
    GROUP_INSTANCE = 42
    COORDINATOR_KEY = 43
    KEY_TYPE = 44
    MEMBER_EPOCH = 45
    REPLICA_ID = 46
    RACK = 47
    LEADER = 48
    PRINCIPAL = 49
    COMMITTED_OFFSET = 50
    FORGOTTEN = 51
    ENUM = 52
    BASE_OFFSET = 53
    SCHEMA = 54
    TIMEOUT = 55
    TRANSACTION_RESULT = 56
    CONFIG_VALUE = 57
    HELD_BACK = 58  # a throttle before KIP-219: the broker responds after it, not before
    READ_REPLICA = 59  # the broker from which the client should read a partition (KIP-392)
    FEATURE = 60  # the name of a feature that the server supports (KIP-584)
    ABORTED_OFFSET = 61  # the first offset of an aborted transaction of a partition


WORDS: Final = {meaning.name.lower(): meaning for meaning in Meaning if meaning is not Meaning.NONE}

_TEXT: Final = frozenset({"string", "string16"})
_INTS: Final = frozenset({"int8", "int16", "int32", "int64", "uint16", "uint32", "varint", "varlong"})

# The compiled readers select a cell only by its meaning, so a meaning must never be on a type they do not
# expect. Meanings that are not listed may be on any type.
TYPES: Final[dict[Meaning, frozenset[str]]] = {
    Meaning.TOPIC: _TEXT,
    Meaning.TOPIC_ID: frozenset({"uuid"}),
    Meaning.PARTITION: frozenset({"int32"}),
    Meaning.ERROR: frozenset({"int16"}),
    Meaning.ERROR_MESSAGE: _TEXT,
    Meaning.THROTTLE: frozenset({"int32"}),
    Meaning.GROUP: _TEXT,
    Meaning.TRANSACTIONAL_ID: _TEXT,
    Meaning.MEMBER: _TEXT,
    Meaning.GENERATION: frozenset({"int32"}),
    Meaning.ACKS: frozenset({"int16"}),
    Meaning.RECORDS: frozenset({"records"}),
    Meaning.CLIENT_ID: _TEXT,
    Meaning.CORRELATION_ID: frozenset({"int32"}),
    Meaning.API_KEY: frozenset({"int16"}),
    Meaning.API_VERSION: frozenset({"int16"}),
    Meaning.SOFTWARE_NAME: _TEXT,
    Meaning.SOFTWARE_VERSION: _TEXT,
    Meaning.SASL_MECHANISM: _TEXT,
    Meaning.PRODUCER_ID: frozenset({"int64"}),
    Meaning.PRODUCER_EPOCH: frozenset({"int16"}),
    Meaning.OFFSET: _INTS,
    Meaning.HIGH_WATERMARK: frozenset({"int64"}),
    Meaning.LAST_STABLE_OFFSET: frozenset({"int64"}),
    Meaning.LOG_START_OFFSET: frozenset({"int64"}),
    Meaning.MAX_WAIT: frozenset({"int32"}),
    Meaning.MIN_BYTES: frozenset({"int32"}),
    Meaning.MAX_BYTES: frozenset({"int32"}),
    Meaning.ISOLATION: frozenset({"int8"}),
    Meaning.SESSION_ID: frozenset({"int32"}),
    Meaning.SESSION_EPOCH: frozenset({"int32"}),
    Meaning.DURATION: _INTS,
    Meaning.TIMESTAMP: _INTS,
    Meaning.LEADER_EPOCH: frozenset({"int32"}),
    Meaning.BROKER: frozenset({"int32"}),
    Meaning.HOST: _TEXT,
    Meaning.PORT: frozenset({"int32", "uint16"}),
    Meaning.CLUSTER_ID: _TEXT,
    Meaning.PROTOCOL_TYPE: _TEXT,
    Meaning.PROTOCOL_NAME: _TEXT,
    Meaning.GROUP_INSTANCE: _TEXT,
    Meaning.COORDINATOR_KEY: _TEXT,
    Meaning.KEY_TYPE: frozenset({"int8"}),
    Meaning.MEMBER_EPOCH: frozenset({"int32"}),
    Meaning.REPLICA_ID: frozenset({"int32"}),
    Meaning.RACK: _TEXT,
    Meaning.LEADER: frozenset({"int32"}),
    Meaning.PRINCIPAL: _TEXT,
    Meaning.COMMITTED_OFFSET: frozenset({"int64"}),
    Meaning.FORGOTTEN: frozenset({"struct"}),
    Meaning.ENUM: _INTS,
    Meaning.BASE_OFFSET: frozenset({"int64"}),
    Meaning.SCHEMA: frozenset({"bytes"}),
    Meaning.TIMEOUT: frozenset({"int32", "int64"}),
    Meaning.TRANSACTION_RESULT: frozenset({"bool"}),
    Meaning.CONFIG_VALUE: _TEXT,
    Meaning.HELD_BACK: frozenset({"int32"}),
    Meaning.READ_REPLICA: frozenset({"int32"}),
    Meaning.FEATURE: _TEXT,
    Meaning.ABORTED_OFFSET: frozenset({"int64"}),
}
