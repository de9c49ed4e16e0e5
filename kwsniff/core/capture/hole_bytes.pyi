from collections.abc import Mapping

from typing_extensions import Buffer

def way(source: int, target: int) -> int:
    """The number of a direction, by the numbers of its ends (packet_offsets.pyi), without signs."""

class HoleBytes:
    """Bytes of holes that captures of one place have, which are fed one behind the other."""

    def __init__(
        self, wanted: Buffer, asked: Buffer, most: int, *, limits: Mapping[str, int] | None = None
    ) -> None:
        """`wanted`: five native numbers of 64 bits for each hole (way, sequence number, bytes, first and last
        time of its connection), sorted. `asked`: ways of which acknowledgements are wanted, sorted. `most`:
        bytes that are kept."""

    def open_capture(self) -> None:
        """The next capture begins."""

    def feed(self, data: Buffer) -> None:
        """Raises CaptureError where it is not a capture."""

    @property
    def is_full(self) -> bool:
        """Whether there was more than `most`."""

    def found(self) -> tuple[bytes, bytes, bytes]:
        """Six native int64 for each piece (number of the hole in `wanted`, position in it, bytes, position in
        the data, number of the capture from 0, what its segment acknowledges or -1); the data; and of
        `asked` three native numbers of 64 bits each: the way, whether anything was acknowledged, and the
        highest number."""
