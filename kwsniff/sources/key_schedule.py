"""Key derivation from TLS secrets, by cipher suite.

Source: RFC 8446 7.1 to 7.3; RFC 5246 5, 6.2.3, 6.3, 8.1; RFC 5288, 6655, 7366 (encrypt then MAC), 7905.
"""

import hmac
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kwsniff.core.tls.hello_texts import NAMES

Decrypt = Callable[[bytes, Any, bytes], bytes]
"""Nonce, data, additional data -> plaintext; raises if decryption fails."""

Parts = tuple[str, Decrypt, bytes, int]
"""Kind, decrypt, fixed part of nonces (12 bytes), bytes that a record adds: arguments of
core.tls.keys.Key."""

TLS_1_1: Final = 0x0302
TLS_1_3: Final = 0x0304

_NAME = re.compile(
    rb"TLS_(?:.*_WITH_)?(AES_128|AES_256|CHACHA20)_(GCM|CCM_8|CCM|CBC|POLY1305)(?:_(SHA|SHA256|SHA384))?"
)
_KEY_BYTES: Final = {b"AES_128": 16, b"AES_256": 32, b"CHACHA20": 32}
_MAC_BYTES: Final = {"sha1": 20, "sha256": 32, "sha384": 48}
_BLOCK: Final = 16


class Suite(NamedTuple):
    """Parameters of a cipher suite for records and keys."""

    mode: bytes
    key_bytes: int
    tag_bytes: int
    hash: str
    """Hash of HKDF or of the PRF of TLS 1.2."""
    mac: str
    """Hash of the MAC, for CBC."""


@lru_cache(256)
def suite_of(number: int) -> Suite | None:
    """None for an unsupported suite."""
    match = _NAME.fullmatch(NAMES.get(number, b""))
    if match is None:
        return None
    cipher, mode, digest = match.groups()
    if mode == b"CBC" and digest is None:
        return None
    return Suite(
        mode=mode,
        key_bytes=_KEY_BYTES[cipher],
        tag_bytes=8 if mode == b"CCM_8" else 16,
        hash="sha384" if digest == b"SHA384" else "sha256",
        mac={b"SHA": "sha1", b"SHA384": "sha384"}.get(digest, "sha256"),
    )


def _aead(suite: Suite, key: bytes) -> Decrypt:
    from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305

    if suite.mode == b"GCM":
        return AESGCM(key).decrypt
    if suite.mode == b"POLY1305":
        return ChaCha20Poly1305(key).decrypt
    return AESCCM(key, tag_length=suite.tag_bytes).decrypt


# -- TLS 1.3 ------------------------------------------------------------------------------------------------


def expand_label(secret: bytes, label: bytes, num: int, digest: str) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446 7.1), for lengths of at most two blocks."""
    label = b"tls13 " + label
    info = struct.pack(">HB", num, len(label)) + label + b"\0"
    first = hmac.digest(secret, info + b"\1", digest)
    return (
        first[:num]
        if num <= len(first)
        else (first + hmac.digest(secret, first + info + b"\2", digest))[:num]
    )


def next_secret(secret: bytes, suite: Suite) -> bytes:
    """Traffic secret after a KeyUpdate (RFC 8446 7.2)."""
    return expand_label(secret, b"traffic upd", len(secret), suite.hash)


def parts_of_1_3(suite: Suite, secret: bytes) -> Parts:
    """The key of a traffic secret."""
    key = expand_label(secret, b"key", suite.key_bytes, suite.hash)
    iv = expand_label(secret, b"iv", 12, suite.hash)
    return "1.3", _aead(suite, key), iv, suite.tag_bytes + 1


# -- TLS 1.2 and 1.1 ----------------------------------------------------------------------------------------


def _p_hash(secret: bytes, seed: bytes, num: int, digest: str) -> bytes:
    out, step = b"", seed
    while len(out) < num:
        step = hmac.digest(secret, step, digest)
        out += hmac.digest(secret, step + seed, digest)
    return out[:num]


def _prf(secret: bytes, seed: bytes, num: int, digest: str, version: int) -> bytes:
    if version > TLS_1_1:
        return _p_hash(secret, seed, num, digest)
    half = (len(secret) + 1) // 2
    md5 = int.from_bytes(_p_hash(secret[:half], seed, num, "md5"))
    return (md5 ^ int.from_bytes(_p_hash(secret[-half:], seed, num, "sha1"))).to_bytes(num)


def parts_of_1_2(
    suite: Suite,
    master: bytes,
    randoms: tuple[bytes, bytes],
    side: int,
    *,
    version: int,
    encrypt_then_mac: bool,
) -> Parts:
    """The key of a master secret for the records of one side; `randoms`: those of client and server."""
    mac = _MAC_BYTES[suite.mac] if suite.mode == b"CBC" else 0
    iv = {b"CBC": 0, b"POLY1305": 12}.get(suite.mode, 4)
    client_random, server_random = randoms
    seed = b"key expansion" + server_random + client_random
    block = _prf(master, seed, 2 * (mac + suite.key_bytes + iv), suite.hash, version)
    sizes = (mac, mac, suite.key_bytes, suite.key_bytes, iv, iv)
    starts = [sum(sizes[:number]) for number in range(7)]
    mac_key, key, fixed = (block[starts[n + side] : starts[n + side + 1]] for n in (0, 2, 4))
    if suite.mode == b"CBC":
        opener = _Cbc(key, mac_key, suite.mac, encrypt_then_mac=encrypt_then_mac)
        return "whole", opener.decrypt, bytes(12), -1
    if suite.mode == b"POLY1305":
        return "implicit", _aead(suite, key), fixed, suite.tag_bytes
    return "explicit", _aead(suite, key), fixed + bytes(8), suite.tag_bytes + 8


class _Cbc:
    """Records of block ciphers: IV | encrypted (data | MAC | padding), or (data | padding) | MAC."""

    def __init__(self, key: bytes, mac_key: bytes, digest: str, *, encrypt_then_mac: bool) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._cipher, self._aes, self._mode = Cipher, algorithms.AES(key), modes.CBC
        self._mac_key, self._digest, self._mac_bytes = mac_key, digest, _MAC_BYTES[digest]
        self._encrypt_then_mac = encrypt_then_mac
        self._latest: tuple[bytes, bytes] = (b"", b"")

    def decrypt(self, number: bytes, data: memoryview, header: bytes) -> bytes:
        record = bytes(data)
        if self._encrypt_then_mac:
            body, mac = record[: -self._mac_bytes], record[-self._mac_bytes :]
            self._check(number, header, body, mac)
            return self._unpad(self._open(body))
        plain = self._unpad(self._open(record))
        self._check(number, header, plain[: -self._mac_bytes], plain[-self._mac_bytes :])
        return plain[: -self._mac_bytes]

    def _open(self, body: bytes) -> bytes:
        if len(body) < 2 * _BLOCK or len(body) % _BLOCK:
            raise ValueError
        if self._latest[0] != body:  # after a loss, sequence numbers are tried in turn
            decryptor = self._cipher(self._aes, self._mode(body[:_BLOCK])).decryptor()
            self._latest = body, decryptor.update(body[_BLOCK:]) + decryptor.finalize()
        return self._latest[1]

    def _unpad(self, plain: bytes) -> bytes:
        padding = plain[-1] + 1
        if padding > len(plain) or plain[-padding:] != bytes((padding - 1,)) * padding:
            raise ValueError
        return plain[:-padding]

    def _check(self, number: bytes, header: bytes, covered: bytes, mac: bytes) -> None:
        what = number + header[:3] + struct.pack(">H", len(covered)) + covered
        if len(mac) != self._mac_bytes or not hmac.compare_digest(
            hmac.digest(self._mac_key, what, self._digest), mac
        ):
            raise ValueError
