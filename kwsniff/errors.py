"""Exceptions of kwsniff. Damaged or hostile bytes never raise: they become rows, verdicts and anomalies."""


class KwsniffError(Exception):
    """Base of all exceptions that kwsniff raises; its text is one line with advice."""


class CaptureError(KwsniffError):
    """A capture cannot be read: another format, empty, or unreadable."""


class LayoutError(KwsniffError):
    """A layout file is invalid; the text begins with ``file:line``."""


class UsageError(KwsniffError):
    """The arguments of a command or function are invalid or conflict."""


class PlacedError(UsageError):
    """A text is invalid: the first line says why, the next two show the text and underline the place."""


class OutputError(KwsniffError):
    """The output cannot be written."""
