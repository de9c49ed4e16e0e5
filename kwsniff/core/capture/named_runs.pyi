from typing_extensions import Buffer

def size_with_named(runs: Buffer) -> int | None:
    """Bytes of runs that a Router kept once those are there that it only named; None: it named none.

    Raises CaptureError for what is no runs.
    """

def put_named(runs: Buffer, descriptor: int, target: Buffer) -> None:
    """Writes the runs into `target`, which is as large as `size_with_named` says, with what is named from the
    capture that is open there. The interpreter is not held.

    Raises CaptureError where the capture has become shorter, OSError.
    """
