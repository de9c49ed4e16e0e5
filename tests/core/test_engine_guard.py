"""The engine never reads past the end of what it is given."""

import random
import subprocess
import sys

from kwsniff.core.wire import engine

from .guard import flush_against_guard_page
from .test_engine import ITEMS, ITEMS_BYTES, TAGGED

TAGGED_BYTES = b"\x05\x05\x03\x03hi\x01\x01\xee\x00\x02\x01\x02\x02\x02\x01\x09\x07\x00"


def test_every_cut_and_random_damage_flush_against_a_guard_page():
    random_ = random.Random(7)
    for code, whole in ((ITEMS, ITEMS_BYTES), (TAGGED, TAGGED_BYTES)):
        for size in range(len(whole) + 1):
            for _ in range(20):
                data = bytearray(whole[:size])
                for _ in range(random_.randrange(3)):
                    if data:
                        data[random_.randrange(size)] = random_.choice((0, 1, 0x7F, 0x80, 0xFF))
                with flush_against_guard_page(bytes(data)) as guarded:
                    assert engine.run(code, guarded) == engine.run(code, bytes(data))


def test_the_guard_page_does_kill():
    script = (
        "import ctypes\n"
        "from tests.core.guard import flush_against_guard_page\n"
        "with flush_against_guard_page(b'abc') as view:\n"
        "    start = ctypes.addressof(ctypes.c_char.from_buffer(view))\n"
        "    ctypes.string_at(start, 4)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode < 0
