"""Arrow's Azure by the settings of hadoop-azure. What Arrow cannot do as they say is refused by name.

Source: "Hadoop Azure Support: ABFS"; pyarrow.fs.AzureFileSystem.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow.fs as pafs

from kwsniff.errors import UsageError
from kwsniff.spark.configuration import explain_refusal, refuse_unused

_KEY: Final = "fs.azure.account.key"
_SAS: Final = "fs.azure.sas.fixed.token"
_ID: Final = "fs.azure.account.oauth2.client.id"
_SECRET: Final = "fs.azure.account.oauth2.client.secret"  # noqa: S105 - the name of the setting
_TOKENS: Final = "fs.azure.account.oauth2.client.endpoint"
_EMULATOR: Final = "fs.azure.abfs.endpoint"
_TYPE: Final = "fs.azure.account.auth.type"
_OAUTH: Final = "fs.azure.account.oauth.provider.type"
_CLASSES: Final = {
    "fs.azure.account.keyprovider": "SimpleKeyProvider",
    "fs.azure.sas.token.provider.type": "FixedSASTokenProvider",
}
_USED: Final = (_KEY, _SAS, _ID, _SECRET, _TOKENS, _TYPE, _OAUTH, *_CLASSES)
"""With the account's name behind them, or for all accounts."""
_CONCERNS: Final = re.compile(
    r"fs\.azure\.(account\.(?!hns)|sas\.|encryption\.|identity\.|shellkeyprovider|delegation\.|enable\.delegation)"
)
_ACCOUNT: Final = re.compile(r"\.[a-z0-9]+\.(dfs|blob)\.")
_TENANT: Final = re.compile(r"https://[^/]+/([^/]+)/oauth2/")
_OPTIONS: Final = {
    "SharedKey": {"account_key": _KEY},
    "SAS": {"sas_token": _SAS},
    "ClientCredsTokenProvider": {"client_id": _ID, "client_secret": _SECRET, "tenant_id": _TOKENS},
    "MsiTokenProvider": {"client_id": _ID},
}
"""What Arrow is given, by the way to sign in."""


def chosen_settings(stated: Mapping[str, str], host: str) -> Iterator[tuple[str, str]]:
    """Those that concern a container's account. Raises UsageError for one that would be ignored."""
    end = f".{host.partition('@')[2]}"
    special = {name.removesuffix(end): value for name, value in stated.items() if name.endswith(end)}
    common = {name: value for name, value in stated.items() if not _ACCOUNT.search(name)}
    ours = {**common, **special}
    refuse_unused(ours, _USED, _CONCERNS)
    yield from ((name, ours[name]) for name in (*_USED, _EMULATOR) if name in ours)


def azure_file_system(_scheme: str, host: str, settings: Mapping[str, str]) -> Any:
    """A file system of Arrow's. Raises UsageError."""
    account = host.partition("@")[2]
    name, _, domain = account.partition(".")
    known = {each: settings.get(f"{each}.{account}", settings.get(each)) for each in _USED}
    options: dict[str, Any] = {"account_name": name, **_credentials(known)}
    if emulator := settings.get(_EMULATOR):
        options |= dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), emulator)
        options |= dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")
    elif domain and domain != "dfs.core.windows.net":  # a cloud of its own
        options["dfs_storage_authority"] = f".{domain}"
        options["blob_storage_authority"] = f".{domain.replace('dfs.', 'blob.', 1)}"
    return pafs.AzureFileSystem(**{name: value for name, value in options.items() if value is not None})


def _credentials(known: Mapping[str, str | None]) -> dict[str, str | None]:
    """By the way to sign in that is asked for; without one by what there is."""
    for setting, wanted in _CLASSES.items():
        given = known[setting]
        if given and given.rpartition(".")[2] != wanted:
            raise explain_refusal(setting, given, "kwsniff runs no Java for it")
    kind = known[_TYPE]
    if kind == "OAuth":
        kind = (known[_OAUTH] or "ClientCredsTokenProvider").rpartition(".")[2]
        if kind not in ("ClientCredsTokenProvider", "MsiTokenProvider"):
            raise explain_refusal(_OAUTH, known[_OAUTH])
    elif kind and kind not in ("SharedKey", "SAS"):
        raise explain_refusal(_TYPE, kind)
    if kind is None:
        every = {option: known[setting] for each in _OPTIONS.values() for option, setting in each.items()}
        return {**every, "tenant_id": _tenant(known)}
    options = {option: known[setting] for option, setting in _OPTIONS[kind].items()}
    missing = [setting for setting in _OPTIONS[kind].values() if not known[setting]]
    if missing and kind != "MsiTokenProvider":  # a machine's own identity needs no id
        raise UsageError(f"Hadoop's configuration asks for {kind} and has no {missing[0]}")
    return {**options, **({"tenant_id": _tenant(known)} if "tenant_id" in options else {})}


def _tenant(known: Mapping[str, str | None]) -> str | None:
    found = _TENANT.search(known[_TOKENS] or "")
    return found and found[1]
