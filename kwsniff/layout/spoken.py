"""What the core has to know of APIs: those of every server, then those that only a product's servers have."""

from typing import Final

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import ApiRange, Versions
from kwsniff.layout.traits import BROKERS, DETAILS, VERSIONS

_TELLING: Final = (VERSIONS, BROKERS)


def spoken(catalog: Catalog) -> list[tuple[int, ...]]:
    """Facts on each API, ascending by key, then those of products.

    Key, with the product's number above its 16 bits; first, last and first flexible version; internal,
    rendezvous, fallback (0 or 1); first and last version (1, 0: none) in which it is shared, in which tokens
    follow, in which the request has no client id, in which responses may have correlation id 0; whether the
    bytes of requests (1), of responses (2) or of both (3) are kept; whether responses show the server's
    product; the file's checksum.
    """
    return [
        (
            *(number << 16 | api.key, api.min_version, api.max_version, api.flexible_from),
            *(int(api.traits.internal), int(api.traits.rendezvous), int(api.traits.fallback)),
            *_ends(api.traits.shared),
            *_ends(api.traits.tokens),
            *_ends(each.unnamed_requests.get(api.key)),
            *_ends(api.traits.unnumbered),
            ("", *DETAILS).index(api.traits.detail),
            int(tells_product(api)),
            api.checksum,
        )
        for number, each in catalogs(catalog).items()
        for api in each.own_apis()
    ]


def catalogs(catalog: Catalog) -> dict[int, Catalog]:
    """Number of a product, 0 for every server -> its catalog, in the order of `spoken`."""
    return {0: catalog, **catalog.by_product}


def api_names(catalog: Catalog) -> list[str]:
    """Names in the order of `spoken`."""
    return [api.name for each in catalogs(catalog).values() for api in each.own_apis()]


def owner_of(catalog: Catalog, name: str) -> Catalog:
    """The catalog that has an API or an error code of this name: this one, or else that of a product."""
    return (
        next(
            (each for each in catalogs(catalog).values() if each.api(name) or _has_error(each, name)), catalog
        )
        if not name.strip().lstrip("-").isdecimal()
        else catalog
    )


def _has_error(catalog: Catalog, name: str) -> bool:
    return any(error.name == name.upper() for error in catalog.errors.values())


def error_codes(catalog: Catalog) -> dict[str, int]:
    """Names of error codes of every server and of products -> code."""
    every = reversed(catalogs(catalog).values())
    return {error.name: code for each in every for code, error in each.errors.items()}


def tells_product(api: ApiRange) -> bool:
    """Whether its responses show what product a server is."""
    return api.traits.cluster in _TELLING


def _ends(versions: Versions | None) -> tuple[int, int]:
    return (versions.first, versions.last) if versions else (1, 0)
