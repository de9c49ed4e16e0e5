"""Checksums of IP, TCP, UDP and ICMP. Source: RFC 1071, 9293, 8200."""

import struct


def checksum(data: bytes | bytearray) -> int:
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data = data + b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def transport_checksum(packet: bytes | bytearray, ip: int, at: int, end: int, protocol: int) -> int:
    """The checksum of a TCP, UDP or ICMPv6 message, with its pseudo header; its own field must be 0."""
    addresses = packet[ip + 12 : ip + 20] if packet[ip] >> 4 == 4 else packet[ip + 8 : ip + 40]
    pseudo = bytes(addresses) + struct.pack(">II", end - at, protocol)
    return checksum(pseudo + bytes(packet[at:end]))
