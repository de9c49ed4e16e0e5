"""Names and addresses: of the same length and alphabet, and different where they were different."""

from __future__ import annotations

from ipaddress import ip_address
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwsniff.anonymize.names import Detail, Names
from kwsniff.layout.catalog import load_catalog

KEY = bytes(range(32))


def by(key: bytes = KEY) -> Names:
    return Names(key, load_catalog().names)


NAMES = by()


def shape(text: str) -> str:
    """Letters and digits as their alphabet."""
    return "".join(
        "9" if each.isdecimal() else "A" if each.isupper() else "a" if each.isalpha() else each
        for each in text
    )


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_a_name_keeps_its_length_and_alphabet(text: str) -> None:
    new = NAMES.name(text.encode()).decode()
    assert shape(new) == shape(text)


@given(st.binary(max_size=40))
def test_any_bytes_keep_their_length(data: bytes) -> None:
    assert len(NAMES.name(data)) == len(NAMES.word(data)) == len(NAMES.sasl(data)) == len(data)
    for detail in Detail:
        assert len(NAMES.value(data, detail)) == len(data)


@pytest.mark.parametrize("shape", ["a", "9", "a9", "aa", "99", "9a9"])
def test_different_names_have_different_replacements(shape: str) -> None:
    alphabets = {"a": "abcdefghijklmnopqrstuvwxyz", "9": "0123456789"}
    every = ["".join(each) for each in product(*(alphabets[each] for each in shape))]
    assert len({NAMES.name(each.encode()) for each in every}) == len(every)


def test_a_word_has_one_replacement_wherever_it_is() -> None:
    client = NAMES.name(b"shop-7")
    assert NAMES.name(b"shop-7-0a1b2c3d-4e5f").startswith(client + b"-")
    assert NAMES.name(b"consumer-shop-1").split(b"-")[1] == client.split(b"-")[0]


def test_the_key_decides() -> None:
    other = by(bytes(32))
    assert by().name(b"warehouse") == NAMES.name(b"warehouse") != other.name(b"warehouse") != b"warehouse"
    assert by().addresses.ip(bytes([10, 1, 2, 3])) != other.addresses.ip(bytes([10, 1, 2, 3]))


@pytest.mark.parametrize(
    "name",
    ["__consumer_offsets", "consumer-1", "User:alice", "shop->eu.MirrorSourceConnector", "localhost:9092"],
)
def test_words_of_kafka_stay(name: str) -> None:
    kept = load_catalog().names
    new = NAMES.name(name.encode()).decode()
    if name in kept.whole:
        assert new == name
    for word in ("consumer", "User", "MirrorSourceConnector", "localhost"):
        assert (word in new) == (word in name)


def test_numbers_of_versions_stay() -> None:
    assert NAMES.word(b"apache-kafka-java 4.3.1") == b"apache-kafka-java 4.3.1"
    assert NAMES.word(b"SCRAM-SHA-256") == b"SCRAM-SHA-256"
    assert NAMES.word(b"retention.ms") == b"retention.ms"
    assert b"acme" not in NAMES.word(b"acme-gateway 1.2")


def test_scram_keeps_its_attributes() -> None:
    # RFC 5802 5.
    new = NAMES.sasl(b"n,,n=user1,r=fyko+d2lbbFgONRv9qkxdawL")
    assert new.startswith(b"n,,n=") and b",r=" in new
    assert b"user1" not in new and b"fyko" not in new


def test_a_token_of_kerberos_keeps_its_mechanism_only() -> None:
    token = bytes.fromhex("6082001006092a864886f7120102020100") + b"secret\xff"
    assert NAMES.sasl(token) == token[:15] + bytes(len(token) - 15)


def test_values_have_the_shape_of_what_they_were() -> None:
    assert NAMES.value(b'{"price": 1299}', Detail.SHAPE) == b'{"aaaaa": 0000}'
    assert NAMES.value(b"\x00\x01binary\xff", Detail.SHAPE) == bytes(9)
    assert NAMES.value(b"key-1") != NAMES.value(b"key-2")
    assert NAMES.value(b"key-1", Detail.SIZE) == b"aaaaa"


def common(one: bytes, other: bytes) -> int:
    """Bytes at the start that are the same."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))


# The others keep their first byte: this network, loopback, groups.
HOSTS = st.integers(1 << 24, (224 << 24) - 1).filter(lambda each: each >> 24 != 127)


@given(HOSTS, HOSTS)
def test_addresses_keep_common_prefixes_and_no_others(one: int, other: int) -> None:
    old = [each.to_bytes(4, "big") for each in (one, other)]
    new = [NAMES.addresses.ip(each) for each in old]
    assert common(*old) == common(*new)
    assert [len(str(ip_address(each))) for each in old] == [len(str(ip_address(each))) for each in new]


@given(st.binary(min_size=16, max_size=16))
def test_addresses_of_ip_6_keep_the_length_of_their_text(address: bytes) -> None:
    assert len(str(ip_address(NAMES.addresses.ip(address)))) == len(str(ip_address(address)))


def test_all_hosts_of_a_network_stay_apart() -> None:
    hosts = [bytes([192, 168, 3, last]) for last in range(256)]
    new = {NAMES.addresses.ip(each) for each in hosts}
    assert len(new) == 256
    assert len({each[:3] for each in new}) == 1
    assert not new & set(hosts)


@pytest.mark.parametrize("address", ["127.0.0.1", "255.255.255.255", "::1", "::"])
def test_addresses_that_say_nothing_stay(address: str) -> None:
    assert NAMES.addresses.ip(ip_address(address).packed) == ip_address(address).packed


@pytest.mark.parametrize("address", ["10.20.3.4", "fd00:1::27", "2001:db8:0:aa::9"])
def test_a_text_names_the_same_host_as_a_packet(address: str) -> None:
    packed = NAMES.addresses.ip(ip_address(address).packed)
    assert ip_address(NAMES.name(address.encode()).decode()).packed == packed
    assert NAMES.name(f"/{address}".encode()).decode() == f"/{ip_address(packed)}"


def test_cards_become_private_ones_and_broadcast_stays() -> None:
    macs = [bytes([0, 1, 2, 3, 4, last]) for last in range(50)]
    new = [NAMES.addresses.mac(each) for each in macs]
    assert all(each[0] & 3 == 2 for each in new)
    assert all(one != other for one, other in combinations(new, 2))
    assert NAMES.addresses.mac(b"\xff" * 6) == b"\xff" * 6
