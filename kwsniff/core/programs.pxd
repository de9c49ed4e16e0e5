# cython: language_level=3
# The program of a message, and its run over a message's bytes.
#
# Rule 1: a program is compiled when a message of its API, version and direction is first met, and once.
# Rule 2: a run leaves its cells in the context's tape; the next run overwrites them.

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc

from kwsniff.core.dialog cimport PROGRAM_READY, PROGRAM_UNTRIED, Context, Program
from kwsniff.core.engine cimport run_program
from kwsniff.core.octets cimport Octets
from kwsniff.core.recognition cimport NUM_API_KEYS, NUM_VERSIONS
from kwsniff.core.tape cimport EngineStop

cdef enum:
    MIN_TRIAL = 24              # bytes of a message that must make sense before its rest is waited for


cdef inline Program* find_program(Context* context, int key, int version, int direction) noexcept nogil:
    """The program of a message, compiled when first met; NULL when no layout has it."""
    cdef Program* programs
    if key < 0 or key >= NUM_API_KEYS or version < 0 or version >= NUM_VERSIONS:
        return NULL
    programs = context.programs[direction][key]
    if programs == NULL:
        programs = <Program*>calloc(NUM_VERSIONS, sizeof(Program))
        if programs == NULL:
            return NULL
        context.programs[direction][key] = programs
    if programs[version].state == PROGRAM_UNTRIED:
        context.compile(context.owner, key, version, direction, &programs[version])
    return &programs[version] if programs[version].state == PROGRAM_READY else NULL


cdef inline int run(Context* context, Program* program, Octets message, EngineStop* stop) noexcept nogil:
    """An EngineStatus; `message` without its size."""
    return run_program(program.ops, program.num_ops, message.at, message.num, &context.tape,
                       <size_t>context.limits.cells, stop)
