from struct import Struct
from typing import NamedTuple

from typing_extensions import Buffer

STATUSES: tuple[str, ...]
BATCH: Struct

class RecordBatch(NamedTuple):
    offset: int
    size: int
    payload: int
    stored_crc: int
    leader_epoch: int
    last_offset_delta: int
    base_sequence: int
    record_count: int
    base_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    attributes: int
    magic: int
    is_valid: int

def batches(data: Buffer) -> tuple[list[RecordBatch], int, int]: ...
def crc32c(data: Buffer, *, hardware: bool = ...) -> int: ...
def crc32(data: Buffer) -> int: ...
