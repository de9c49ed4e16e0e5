"""Certificates that are right, and certificates that are not: expired, of another CA, for another name."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Authority:
    """A CA; its certificate stands in `path` as PEM."""

    path: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


@dataclass(frozen=True)
class Issued:
    """A key and a certificate: one file each, and `store`, one with both as Kafka takes it."""

    key: Path
    certificate: Path
    store: Path


def authority(folder: Path, name: str) -> Authority:
    """A new CA, good for a year."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _begun(name, name, key, YEAR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(path, key, certificate)


def issue(ca: Authority, folder: Path, name: str, host: str, *, expired: bool = False) -> Issued:
    """A certificate of `ca` for an address or a name; `expired`: since a month."""
    key = ec.generate_private_key(ec.SECP256R1())
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        alternative = x509.DNSName(host)
    issuer = ca.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    certificate = (
        _begun(name, str(issuer), key, timedelta(days=-30) if expired else YEAR)
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    paths = Issued(*(folder / f"{name}.{kind}.pem" for kind in ("key", "certificate", "store")))
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    paths.key.write_bytes(secret)
    paths.certificate.write_bytes(pem)
    paths.store.write_bytes(secret + pem)
    return paths


def _begun(
    name: str, issuer: str, key: ec.EllipticCurvePrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - YEAR)
        .not_valid_after(now + lifetime)
    )
