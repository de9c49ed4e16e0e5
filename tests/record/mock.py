"""librdkafka's mock cluster, driven through the library that confluent-kafka brings along."""

from __future__ import annotations

import ctypes
import importlib.metadata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from types import TracebackType

from tests.record.relay import Relay

_TEXT = 512


@cache
def library() -> ctypes.CDLL:
    """The librdkafka of the installed confluent-kafka, with the signatures used here."""
    entries = importlib.metadata.files("confluent-kafka") or ()
    found = [
        entry.locate() for entry in entries if entry.name.startswith("librdkafka") and ".so" in entry.name
    ]
    if not found:
        raise RuntimeError("confluent-kafka brings no librdkafka here: install its binary wheel")
    rdk = ctypes.CDLL(str(found[0]))
    pointer, text, integer, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
    signatures: dict[str, tuple[object, list[object]]] = {
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_version_str": (text, []),
        "rd_kafka_new": (pointer, [integer, pointer, ctypes.c_char_p, size]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, integer]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_start_request_tracking": (None, [pointer]),
        "rd_kafka_mock_get_requests": (ctypes.POINTER(pointer), [pointer, ctypes.POINTER(size)]),
        "rd_kafka_mock_request_api_key": (ctypes.c_int16, [pointer]),
        "rd_kafka_mock_request_destroy_array": (None, [ctypes.POINTER(pointer), size]),
        "rd_kafka_mock_push_request_errors_array": (
            None,
            [pointer, ctypes.c_int16, size, ctypes.POINTER(integer)],
        ),
        "rd_kafka_mock_topic_create": (integer, [pointer, text, integer, integer]),
        "rd_kafka_mock_topic_set_error": (None, [pointer, text, integer]),
        "rd_kafka_mock_set_apiversion": (
            integer,
            [pointer, ctypes.c_int16, ctypes.c_int16, ctypes.c_int16],
        ),
        "rd_kafka_mock_broker_set_host_port": (integer, [pointer, ctypes.c_int32, text, integer]),
        "rd_kafka_mock_broker_set_rtt": (integer, [pointer, ctypes.c_int32, integer]),
        "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [pointer, ctypes.c_int32]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(rdk, name)
        function.restype = result
        function.argtypes = arguments
    return rdk


class MockCluster:
    """Brokers on loopback ports while the block runs; with ``relay`` clients see them behind one, on
    ``host``."""

    def __init__(self, brokers: int = 1, relay: str | None = None, host: str = "127.0.0.1") -> None:
        self.host = host
        rdk = library()
        text = ctypes.create_string_buffer(_TEXT)
        self._owner = rdk.rd_kafka_new(0, rdk.rd_kafka_conf_new(), text, _TEXT)
        if not self._owner:
            raise RuntimeError(f"librdkafka would not start: {text.value.decode()}")
        self._cluster = rdk.rd_kafka_mock_cluster_new(self._owner, brokers)
        rdk.rd_kafka_mock_start_request_tracking(self._cluster)
        rdk.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        raw: bytes = rdk.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.ports = [int(address.rpartition(":")[2]) for address in raw.decode().split(",")]
        self._relays = (
            [Relay(port, modern=relay == "modern", host=host) for port in self.ports] if relay else []
        )
        for number, end in enumerate(self._relays, start=1):
            rdk.rd_kafka_mock_broker_set_host_port(self._cluster, number, host.encode(), end.port)
            self.ports[number - 1] = end.port

    def __enter__(self) -> MockCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for relay in self._relays:
            relay.close()
        library().rd_kafka_mock_cluster_destroy(self._cluster)
        library().rd_kafka_destroy(self._owner)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.host}:{port}" for port in self.ports)

    def topic(self, name: str, partitions: int = 1) -> None:
        library().rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)

    def next_errors(self, api_key: int, codes: Sequence[int]) -> None:
        """The next requests of this API are answered with these codes, one each."""
        array = (ctypes.c_int * len(codes))(*codes)
        library().rd_kafka_mock_push_request_errors_array(self._cluster, api_key, len(codes), array)

    def limit(self, api_key: int, lowest: int, highest: int) -> None:
        """The versions of an API the brokers accept; -1, -1 removes the API."""
        library().rd_kafka_mock_set_apiversion(self._cluster, api_key, lowest, highest)

    def round_trip(self, broker: int, milliseconds: int) -> None:
        library().rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds)

    def requests(self) -> Counter[int]:
        """How many requests of each API key the brokers have logged, and ApiVersions the relays refused."""
        count = ctypes.c_size_t()
        rows = library().rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        seen = Counter(int(library().rd_kafka_mock_request_api_key(rows[i])) for i in range(count.value))
        library().rd_kafka_mock_request_destroy_array(rows, count)
        seen[18] += sum(relay.refused for relay in self._relays)
        return seen


def version() -> str:
    raw: bytes = library().rd_kafka_version_str()
    return raw.decode()
