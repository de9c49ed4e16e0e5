from typing_extensions import Buffer

STATUSES: tuple[str, ...]
MAX_CELLS: int

def run(
    program: bytes, data: Buffer, *, max_cells: int = 16_000_000, nulls: bool = False
) -> tuple[bytes, int, int, int]: ...
