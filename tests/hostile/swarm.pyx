# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Many small executions per call: mutates messages, programs and record sets and runs the compiled rooms over them.

Rules
  1. Every execution is named by (seed, number) alone: mutating starts from a generator seeded with both.
  2. Inputs lie in memory of exactly their size, so that AddressSanitizer sees the first byte too far.
  3. A broken promise of the core ends the round with the execution's number and what was promised.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

from kwsniff.core.bytes.cursor cimport Cursor, cursor_over
from kwsniff.core.wire.engine cimport free_tape, program_ops, run_program
from kwsniff.core.wire.facts cimport Facts, free_facts, gather_facts
from kwsniff.core.bytes.span cimport make_span
from kwsniff.core.wire.records cimport BATCH_OK, Batch, check_batch, next_batch
from kwsniff.core.wire.tape cimport *
from kwsniff.core.wire.topic_ids cimport TopicIds, free_topic_ids, start_topic_ids

cdef enum:
    SCRATCH = 1 << 16
    MAX_CELLS = 1 << 15
    MOST_OPS = 24

PROMISES = (
    "kept", "status is in the list", "stop lies in the message", "cells belong to ops", "cells lie in the message",
    "cells stay under their limit", "batches lie in the record set", "the walk moves on",
)


cdef class Exact:
    """A copy of bytes in memory of exactly their size, read through the buffer protocol."""

    cdef uint8_t* data
    cdef size_t size

    def __cinit__(self, const uint8_t[::1] data not None):
        self.size = data.shape[0]
        self.data = <uint8_t*>malloc(self.size)     # of nothing: a pointer that may not be read at all
        if self.size:
            memcpy(self.data, &data[0], self.size)

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, <Py_ssize_t>self.size, 1, flags)


cdef struct Dice:
    uint64_t state


cdef inline uint64_t roll(Dice* dice) noexcept nogil:
    # splitmix64
    cdef uint64_t z
    dice.state += <uint64_t>0x9E3779B97F4A7C15
    z = dice.state
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline size_t below(Dice* dice, size_t num) noexcept nogil:
    return <size_t>(roll(dice) % num) if num else 0


cdef Dice dice_for(uint64_t seed, uint64_t number) noexcept nogil:
    cdef Dice dice
    dice.state = seed * <uint64_t>0xD6E8FEB86659FD93 + number
    roll(&dice)
    return dice


cdef uint32_t odd_number(Dice* dice) noexcept nogil:
    cdef uint32_t[14] numbers = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
                                 0xFFFFFFFE, 0xFFFFFFFF]
    return numbers[below(dice, 14)]


cdef size_t mutate(Dice* dice, uint8_t* data, size_t size) noexcept nogil:
    """A few edits in place; `data` has SCRATCH bytes of room. Returns the new size."""
    cdef size_t edits = 1 + below(dice, 4), at, num, to
    cdef uint32_t number
    cdef int kind
    while edits:
        edits -= 1
        kind = <int>below(dice, 9)
        at = below(dice, size)
        if size == 0 or kind == 0:          # insert
            num = 1 + below(dice, 8)
            if size + num > SCRATCH:
                continue
            memmove(data + at + num, data + at, size - at)
            for to in range(num):
                data[at + to] = <uint8_t>roll(dice)
            size += num
        elif kind == 1:                     # bit
            data[at] ^= <uint8_t>(1 << below(dice, 8))
        elif kind == 2:                     # byte
            data[at] = <uint8_t>odd_number(dice)
        elif kind == 3:                     # any byte
            data[at] = <uint8_t>roll(dice)
        elif kind == 4 and size >= 2:       # 16 bits, big
            at = below(dice, size - 1)
            number = odd_number(dice)
            data[at] = <uint8_t>(number >> 8)
            data[at + 1] = <uint8_t>number
        elif kind == 5 and size >= 4:       # 32 bits, big
            at = below(dice, size - 3)
            number = odd_number(dice)
            for num in range(4):
                data[at + num] = <uint8_t>(number >> (24 - 8 * num))
        elif kind == 6:                     # the end goes
            size = at
        elif kind == 7:                     # a piece goes
            num = below(dice, size - at) + 1
            memmove(data + at, data + at + num, size - at - num)
            size -= num
        elif kind == 8:                     # a piece comes twice
            num = below(dice, size - at) + 1
            if num > 64:
                num = 64
            to = below(dice, size)
            if size + num > SCRATCH:
                continue
            memmove(data + to + num, data + to, size - to)
            if at >= to:
                at += num
            memmove(data + to, data + (at if at + num <= size + num else to), num)
            size += num
    return size


cdef size_t invent_program(Dice* dice, uint8_t* code) noexcept nogil:
    """Ops at random, mostly with jumps forward; returns the size with header."""
    cdef uint32_t num = 1 + <uint32_t>below(dice, MOST_OPS), i
    cdef Op op
    memset(code, 0, 16)
    memcpy(code, b"KWP1", 4)
    memcpy(code + 4, &num, 4)
    for i in range(num):
        memset(&op, 0, sizeof(Op))
        op.kind = <uint8_t>below(dice, 21 if below(dice, 40) else 256)
        if below(dice, 4) == 0:
            op.kind = KIND_END
        op.flags = <uint8_t>below(dice, 64)
        op.meaning = <uint8_t>below(dice, 57)
        op.a = i + 1 + <uint32_t>below(dice, num - i + 1)
        if below(dice, 12) == 0:
            op.a = odd_number(dice)
        op.b = odd_number(dice) if below(dice, 8) == 0 else <uint32_t>below(dice, 6)
        op.c = <uint32_t>below(dice, 12)
        memcpy(code + 16 + 16 * <size_t>i, &op, sizeof(Op))
    return 16 + 16 * <size_t>num


cdef void damage_program(Dice* dice, uint8_t* code, size_t size) noexcept nogil:
    """Keeps header and size, changes fields of ops."""
    cdef size_t edits = 1 + below(dice, 3), at
    cdef uint32_t number
    if size < 32:
        return
    while edits:
        edits -= 1
        at = 16 + 4 * below(dice, (size - 16) // 4)
        if below(dice, 2):
            code[at + below(dice, 4)] = <uint8_t>below(dice, 24)
        else:
            number = odd_number(dice) if below(dice, 3) == 0 else <uint32_t>below(dice, (size - 16) // 16 + 1)
            memcpy(code + at, &number, 4)


cdef int check_tape(const Op* ops, uint32_t num_ops, Tape* tape, size_t size, int status, EngineStop* stop) noexcept nogil:
    cdef size_t i
    cdef Cell* cell
    cdef uint8_t kind
    if status < 0 or status > ENGINE_BAD_PROGRAM:
        return 1
    if stop.offset > size or (status != ENGINE_BAD_PROGRAM and stop.node >= num_ops):
        return 2
    if tape.num > MAX_CELLS:
        return 5
    for i in range(tape.num):
        cell = &tape.cells[i]
        if cell.node >= num_ops:
            return 3
        if cell.offset > size:
            return 4
        kind = ops[cell.node].kind
        if kind == KIND_STRING or kind == KIND_BYTES or kind == KIND_UUID:
            if cell.value > <int64_t>(size - cell.offset):
                return 4
    return 0


cdef struct Engine:
    Tape tape
    Facts facts
    TopicIds topic_ids


cdef int run_one(Engine* engine, Dice* dice, const uint8_t* code, size_t code_size, const uint8_t* message,
                 size_t size, int how, uint8_t* scratch) noexcept nogil:
    """how: 0 the message is damaged, 1 its program too, 2 the program is invented, 3 nothing is damaged."""
    cdef uint8_t* exact
    cdef uint8_t* program
    cdef EngineStop stop
    cdef uint32_t num_ops = 0
    cdef const Op* ops
    cdef int status, broken
    if how == 2:
        code_size = invent_program(dice, scratch)
        program = <uint8_t*>malloc(code_size)
        memcpy(program, scratch, code_size)
    else:
        program = <uint8_t*>malloc(code_size)
        memcpy(program, code, code_size)
        if how == 1:
            damage_program(dice, program, code_size)
    memcpy(scratch, message, size)
    if how != 3:
        size = mutate(dice, scratch, size)
    exact = <uint8_t*>malloc(size)
    memcpy(exact, scratch, size)
    ops = program_ops(program, code_size, &num_ops)
    status = run_program(ops, num_ops, exact, size, &engine.tape, MAX_CELLS, (size & 1) == 0, &stop)
    broken = check_tape(ops, num_ops, &engine.tape, size, status, &stop)
    if broken == 0:
        gather_facts(&engine.facts, ops, &engine.tape, make_span(exact, size), &engine.topic_ids)
    free(exact)
    free(program)
    return broken


def engine_round(list pairs, uint64_t seed, uint64_t first, uint64_t num, int how):
    """Runs executions [first, first + num) over (program, message) pairs; returns (done, promise broken)."""
    cdef Engine engine
    cdef Dice dice
    cdef uint64_t i
    cdef bytes code, message
    cdef int broken = 0
    cdef uint8_t* scratch = <uint8_t*>malloc(SCRATCH + 4096)
    cdef const uint8_t* code_at
    cdef const uint8_t* message_at
    cdef size_t code_size, size
    memset(&engine, 0, sizeof(Engine))
    start_topic_ids(&engine.topic_ids, 1000, 1)
    i = first
    try:
        while i < first + num:
            dice = dice_for(seed, i)
            code, message = pairs[below(&dice, len(pairs))]
            code_at, code_size, message_at, size = code, len(code), message, len(message)
            if size > SCRATCH // 2:
                size = SCRATCH // 2
            with nogil:
                broken = run_one(&engine, &dice, code_at, code_size, message_at, size, how, scratch)
            i += 1
            if broken:
                break
    finally:
        free(scratch)
        free_tape(&engine.tape)
        free_facts(&engine.facts)
        free_topic_ids(&engine.topic_ids)
    return i - first, PROMISES[broken]


cdef int walk_one(Dice* dice, const uint8_t* records, size_t size, uint8_t* scratch) noexcept nogil:
    cdef uint8_t* exact
    cdef Cursor cursor
    cdef Batch batch
    cdef size_t behind = 0
    cdef int broken = 0
    memcpy(scratch, records, size)
    size = mutate(dice, scratch, size)
    exact = <uint8_t*>malloc(size)
    memcpy(exact, scratch, size)
    cursor = cursor_over(exact, size)
    while next_batch(&cursor, exact, &batch) == BATCH_OK:
        if batch.offset != behind or batch.size == 0:
            broken = 7
            break
        behind = <size_t>batch.offset + batch.size
        if behind > size or batch.payload > behind or batch.payload < batch.offset:
            broken = 6
            break
        check_batch(exact, &batch)
    free(exact)
    return broken


def records_round(list sets, uint64_t seed, uint64_t first, uint64_t num):
    """The same for record sets: the walk over batches and their CRCs."""
    cdef Dice dice
    cdef uint64_t i = first
    cdef bytes records
    cdef int broken = 0
    cdef uint8_t* scratch = <uint8_t*>malloc(SCRATCH + 4096)
    cdef const uint8_t* at
    cdef size_t size
    try:
        while i < first + num and not broken:
            dice = dice_for(seed, i)
            records = sets[below(&dice, len(sets))]
            at, size = records, len(records)
            if size > SCRATCH // 2:
                size = SCRATCH // 2
            with nogil:
                broken = walk_one(&dice, at, size, scratch)
            i += 1
    finally:
        free(scratch)
    return i - first, PROMISES[broken]
