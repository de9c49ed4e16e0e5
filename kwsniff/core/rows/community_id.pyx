# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The Community ID flow hash of a connection, version 1, by which Zeek, Suricata and Arkime name it, too.

Rules
  1. The seed is 0. The smaller endpoint comes first: by address, then by port, both as bytes.
  2. IPv4 addresses have four bytes, IPv6 sixteen.
  3. All of it fits one block of SHA-1 (FIPS 180-4).

    "1:" base64(SHA-1( seed 2 | address | address | protocol 1 | 0 | port 2 | port 2 ))
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kwsniff.core.tcp.connection cimport Connection

cdef enum:
    BLOCK = 64
    DIGEST = 20
    TCP = 6

cdef const char* BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef uint8_t[12] MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]


cdef inline uint32_t rotate(uint32_t word, int bits) noexcept nogil:
    return word << bits | word >> (32 - bits)


cdef void hash_block(const uint8_t* block, uint8_t* digest) noexcept nogil:
    """SHA-1 of a padded message of one block."""
    cdef uint32_t[80] words
    cdef uint32_t[5] start = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0]
    cdef uint32_t a = start[0], b = start[1], c = start[2], d = start[3], e = start[4]
    cdef uint32_t mixed, constant, step
    cdef int i
    for i in range(16):
        words[i] = (<uint32_t>block[4 * i] << 24 | <uint32_t>block[4 * i + 1] << 16
                    | <uint32_t>block[4 * i + 2] << 8 | block[4 * i + 3])
    for i in range(16, 80):
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1)
    for i in range(80):
        if i < 20:
            mixed, constant = b & c | ~b & d, 0x5A827999
        elif i < 40:
            mixed, constant = b ^ c ^ d, 0x6ED9EBA1
        elif i < 60:
            mixed, constant = b & c | b & d | c & d, 0x8F1BBCDC
        else:
            mixed, constant = b ^ c ^ d, 0xCA62C1D6
        step = rotate(a, 5) + mixed + e + constant + words[i]
        e, d, c, b, a = d, c, rotate(b, 30), a, step
    start[0] += a
    start[1] += b
    start[2] += c
    start[3] += d
    start[4] += e
    for i in range(DIGEST):
        digest[i] = <uint8_t>(start[i // 4] >> (24 - 8 * (i % 4)))


cdef void write_community_id(Connection* connection, uint8_t* text) noexcept nogil:
    """`text`: COMMUNITY_ID_BYTES."""
    cdef uint8_t[BLOCK] block
    cdef uint8_t[DIGEST + 1] digest
    cdef int skipped = 12
    cdef int at = 2, i, end
    cdef uint32_t three
    for end in range(2):
        for i in range(12):
            if connection.address[end][i] != MAPPED[i]:
                skipped = 0
    memset(block, 0, BLOCK)
    for end in range(2):
        memcpy(&block[at], &connection.address[end][skipped], 16 - skipped)
        at += 16 - skipped
    block[at] = TCP
    at += 2
    for end in range(2):
        block[at] = <uint8_t>(connection.port[end] >> 8)
        block[at + 1] = <uint8_t>connection.port[end]
        at += 2
    block[at] = 0x80
    block[BLOCK - 2] = <uint8_t>(8 * at >> 8)
    block[BLOCK - 1] = <uint8_t>(8 * at)
    hash_block(block, digest)
    digest[DIGEST] = 0
    text[0], text[1] = 0x31, 0x3A
    for i in range(7):
        three = <uint32_t>digest[3 * i] << 16 | <uint32_t>digest[3 * i + 1] << 8 | digest[3 * i + 2]
        for end in range(4):
            text[2 + 4 * i + end] = <uint8_t>BASE64[three >> (18 - 6 * end) & 63]
    text[COMMUNITY_ID_BYTES - 1] = 0x3D
