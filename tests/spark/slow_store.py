"""An S3 on loopback under load: it answers a share of the requests below `slow/` with 503 SlowDown, as S3
does.

`python -m tests.spark.slow_store SHARE`; each refusal is a line with ` 503 ` in its log.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

SLOW: Final = "slow"
_SLOW_DOWN: Final = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SlowDown</Code><Message>Please reduce your '
    b"request rate.</Message><RequestId>PC1N5BNT0TGHR9ZQ</RequestId><HostId>"
    + b"h" * 76
    + b"</HostId></Error>"
)
"""As long as S3's: Arrow reads a part of a file into a buffer of that part's size, and repeats no request
whose refusal is longer."""


def refuse_some(application: Callable[..., Iterable[bytes]], share: float) -> Callable[..., Iterable[bytes]]:
    """The same WSGI application, with refusals."""
    dice = random.Random(1)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if f"/{SLOW}/" not in environ["PATH_INFO"] or dice.random() >= share:
            return application(environ, start)
        if environ.get("wsgi.input_terminated"):
            environ["wsgi.input"].read()
        else:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start(
            "503 Slow Down",
            [("Content-Type", "application/xml"), ("Content-Length", str(len(_SLOW_DOWN)))],
        )
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [_SLOW_DOWN]

    return answer


if __name__ == "__main__":
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    run_simple(
        "127.0.0.1",
        0,
        refuse_some(DomainDispatcherApplication(create_backend_app), float(sys.argv[1])),
        threaded=True,
    )
