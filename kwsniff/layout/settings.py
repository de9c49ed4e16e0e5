"""Which settings' values may be shown: Kafka's own that are no passwords; and error texts without the others.

Plugins, connectors and whoever extends brokers have settings of their own; names say nothing for certain.
"""

import re
from typing import Final

_LISTENER: Final = re.compile(
    r"listener\.name\.[^.]+\.(?:(?:plain|scram-sha-\d+|gssapi|oauthbearer)\.)?", re.IGNORECASE
)
# ConfigException: "Invalid value VALUE for configuration NAME: ..."; ConfigDef's validators say it alike. Two
# searches, as one for both would begin anew at every "Invalid value" of a hostile text.
_INVALID: Final = re.compile(r"Invalid value ", re.IGNORECASE)
_NAMED: Final = re.compile(r" for (?:configuration|entry) ([\w.-]+)", re.IGNORECASE)
# Whatever else a plugin says of a setting: a dotted name, and the value in quotes.
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`""")
_SETTING: Final = re.compile(r"(?<![\w.])[a-z][a-z0-9]*(?:\.[a-z0-9]+)+(?![\w.])")
HIDDEN_VALUE: Final = "<redacted>"


class Settings:
    """The names in public_settings.txt, one per line; `#` begins a comment."""

    def __init__(self, text: str) -> None:
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        self._public = frozenset(line for line in lines if line)

    def is_public(self, name: str) -> bool:
        """Whether its values are known to be no secrets; a listener's own setting is as the general one."""
        return name in self._public or _LISTENER.sub("", name, count=1) in self._public

    def without_values(self, error: str) -> str:
        """A broker's complaint without the value that it repeats, where a setting it names is not public.

        A value may itself look like the name of a setting: the last name ends it.
        """
        value = _INVALID.search(error)
        if value is None:
            return self._without_quotes(error)
        named = list(_NAMED.finditer(error, value.end())) if value else []
        if all(self.is_public(each[1]) for each in named):
            return self._without_quotes(error)
        return f"{error[: value.end()]}{HIDDEN_VALUE}{error[named[-1].start() :]}"

    def _without_quotes(self, error: str) -> str:
        """A text that speaks of a setting that is not public, without what stands in quotes."""
        plain = _QUOTED.sub("''", error)
        if plain == error or all(self.is_public(name) for name in _SETTING.findall(plain)):
            return error
        return _QUOTED.sub(HIDDEN_VALUE, error)
