# cython: language_level=3
# The program of a message, and its run over a message's bytes.
#
# Rule 1: a program is compiled when a message of its API, version and direction is first met, and once.
# Rule 2: some versions had other bytes before their release (KIP-848, KIP-932 early access): such a layout is tried
#         where the released one does not fit to the last byte.
# Rule 3: a run leaves its cells in the context's tape; the next run overwrites them.

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc

from kwsniff.core.kafka.apis cimport ApiRange
from kwsniff.core.kafka.kafka_connection cimport PROGRAM_READY, PROGRAM_UNTRIED, Context, Program
from kwsniff.core.kafka.memory_budget cimport most_cells
from kwsniff.core.wire.engine cimport run_program
from kwsniff.core.bytes.span cimport Span
from kwsniff.core.wire.tape cimport ENGINE_BYTES_LEFT_OVER, ENGINE_OK, EngineStop

cdef enum:
    EARLY_ACCESS = 2            # added to the direction: the layout from before the release
    NUM_LAYOUTS = 4             # of a version: requests, responses, and early-access layouts of both
    MOST_TRAILING = 8           # bytes behind the last field that are believed of a message that proves what this is
    MIN_TRIAL = 24              # bytes of a message that must make sense before its rest is waited for


cdef inline Program* find_program(Context* context, int slot, int version, int direction) noexcept nogil:
    """The program of a message, compiled when first met; NULL when no layout has it."""
    cdef ApiRange* api
    cdef Program** programs
    cdef Program* program
    if slot < 0:
        return NULL
    api = &context.apis.ranges[slot]
    if version < api.first or version > api.last:
        return NULL
    programs = &context.programs[NUM_LAYOUTS * slot + direction]
    if programs[0] == NULL:
        programs[0] = <Program*>calloc(<size_t>(api.last - api.first + 1), sizeof(Program))
        if programs[0] == NULL:
            return NULL
    program = &programs[0][version - api.first]
    if program.state == PROGRAM_UNTRIED:
        context.compile(context.owner, api.id, version, direction, program)
    return program if program.state == PROGRAM_READY else NULL


cdef inline int run(Context* context, Program* program, Span message, EngineStop* stop, bint nulls) noexcept nogil:
    """An EngineStatus; `message` without its size. `nulls`: bytes may be null anywhere."""
    return run_program(program.ops, program.num_ops, message.at, message.num, &context.tape,
                       most_cells(context, message.num), nulls, stop)


cdef inline Program* read_message(Context* context, int slot, int version, int direction, Span message, int* status,
                                  EngineStop* stop) noexcept nogil:
    """Runs the message's program and returns the one whose cells are in the tape; NULL when no layout has it."""
    cdef Program* program = find_program(context, slot, version, direction)
    cdef Program* early
    if program == NULL:
        return NULL
    status[0] = run(context, program, message, stop, False)
    if status[0] == ENGINE_OK:
        return program
    early = find_program(context, slot, version, direction + EARLY_ACCESS)
    if early == NULL:
        return program
    if run(context, early, message, stop, False) == ENGINE_OK:
        status[0] = ENGINE_OK
        return early
    run(context, program, message, stop, False)
    return program


cdef inline bint has_few_behind(Span message, int status, EngineStop* stop) noexcept nogil:
    """Whether the message decodes and a few bytes follow it: some clients and brokers send them."""
    return status == ENGINE_BYTES_LEFT_OVER and stop.offset + MOST_TRAILING >= message.num
