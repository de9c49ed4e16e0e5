"""Settings whose values may be shown: Kafka's own except passwords; and error texts without other values.

Plugins, connectors and broker extensions have their own settings, whose names do not show whether they are
secret.
"""

import re
from typing import Final

_LISTENER: Final = re.compile(
    r"listener\.name\.[^.]+\.(?:(?:plain|scram-sha-\d+|gssapi|oauthbearer)\.)?", re.IGNORECASE
)
# ConfigException: "Invalid value VALUE for configuration NAME: ..."; ConfigDef's validators use the same
# text. Two
# searches, as a single one would restart at every "Invalid value" of a hostile text.
_INVALID: Final = re.compile(r"Invalid value ", re.IGNORECASE)
_NAMED: Final = re.compile(r" for (?:configuration|entry) ([\w.-]+)", re.IGNORECASE)
# Other messages of plugins about a setting: a dotted name, and the value in quotes.
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`""")
_SETTING: Final = re.compile(r"(?<![\w.])[a-z][a-z0-9]*(?:\.[a-z0-9]+)+(?![\w.])")
HIDDEN_VALUE: Final = "<redacted>"


class Settings:
    """The names in public_settings.txt, one per line; `#` begins a comment."""

    def __init__(self, text: str) -> None:
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        self._public = frozenset(line for line in lines if line)

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return self._public

    def is_public(self, name: str) -> bool:
        """Whether its values are known not to be secret; a listener's setting counts like the general one."""
        return name in self._public or _LISTENER.sub("", name, count=1) in self._public

    def without_values(self, error: str) -> str:
        """A broker's error message without the value in it, if it names a setting that is not public.

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
        """A text about a setting that is not public, without its quoted parts."""
        plain = _QUOTED.sub("''", error)
        if plain == error or all(self.is_public(name) for name in _SETTING.findall(plain)):
            return error
        return _QUOTED.sub(HIDDEN_VALUE, error)
