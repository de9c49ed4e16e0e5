# cython: language_level=3
# A pool of column buffers: new memory costs more than all that is written into it. buffer_pool.pyx has the
# rules.

from libc.stdint cimport int64_t

from kwsniff.core.bytes.buffer cimport Buffer

cdef enum:
    NUM_SIZES = 24          # powers of two: 2^0 .. 2^23

# Memory that columns were read from, for columns to come.
cdef struct Spares:
    void* waiting[24]       # by log2 of the size; the first bytes of each lead to the next
    size_t bytes            # that wait
    int64_t users           # the owner, and the blocks that may still come back
    int64_t filled          # bytes of rows and texts that wait in all tables,
    int64_t enough          # how many of them are to be taken,
    int64_t most            # and beyond which no long text is added
    int64_t refused         # texts that were left out so
    int64_t most_waiting    # bytes of memory that wait
    bint closed             # the owner has left
    const int64_t* place    # two numbers that say where the capture is when a row is ended; or NULL: not needed

cdef Spares* start_spares() noexcept nogil
cdef void leave_spares(Spares* spares) noexcept nogil
cdef object hand_over(Spares* spares, Buffer* memory, size_t num, bint another)
