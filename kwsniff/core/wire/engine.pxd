# cython: language_level=3
# run_program: see engine.pyx for the rules.
#
# The caller owns the Tape: zero it once ({NULL, 0, 0}), pass it to any number of runs, free_tape it last.
# Each run sets num to 0 first and keeps cells and cap. Whatever the status, the cells [0, num) are valid.

from libc.stdint cimport uint8_t, uint32_t

from kwsniff.core.wire.tape cimport EngineStop, Op, Tape

cdef const Op* program_ops(const uint8_t* code, size_t size, uint32_t* num_ops) noexcept nogil
cdef int run_program(const Op* ops, uint32_t num_ops, const uint8_t* data, size_t size,
                     Tape* tape, size_t max_cells, bint nulls, EngineStop* stop) noexcept nogil
cdef void free_tape(Tape* tape) noexcept nogil
