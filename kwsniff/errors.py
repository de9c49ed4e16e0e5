"""What kwsniff raises. Damaged or hostile bytes never raise: they become rows, verdicts and anomalies."""


class KwsniffError(Exception):
    """Base of everything kwsniff raises on purpose; its text is one line that says what to try."""


class CaptureError(KwsniffError):
    """A capture cannot be read: not a capture, empty, unreadable."""


class LayoutError(KwsniffError):
    """A layout file is wrong; the text begins with ``file:line``."""


class UsageError(KwsniffError):
    """A command or function was called with arguments that make no sense together."""


class OutputError(KwsniffError):
    """The results cannot be written where they were asked for."""
