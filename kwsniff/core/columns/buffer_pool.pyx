# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""A pool of column buffers: new memory costs more than all that is written into it.

Rules
  1. A block belongs to its readers until the last of them goes; then it waits for the next column of its size, where
     there will be one: others, as those of dictionaries, are freed.
  2. What waits is bounded, and is freed with the owner; blocks that come back later are freed immediately.
  3. Blocks come back and are handed out under the interpreter's lock, so that nothing here needs its own.
  4. Buffers grow to powers of two (buffer.pxd): a size is one list. Small ones are left to malloc.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from kwsniff.core.bytes.buffer cimport Buffer, release, reserve

cdef enum:
    LEAST_BYTES = 1 << 14       # below, malloc has memory at hand that was used before
    MOST_WAITING = 1 << 27      # of room; what was written of it is about half


cdef Spares* start_spares() noexcept nogil:
    cdef Spares* spares = <Spares*>calloc(1, sizeof(Spares))
    if spares != NULL:
        spares.users = 1
        spares.most_waiting = MOST_WAITING
    return spares


cdef void leave_spares(Spares* spares) noexcept nogil:
    """The owner leaves: what waits is freed, the rest as it comes back."""
    cdef void* following
    cdef int size
    if spares == NULL:
        return
    spares.closed = True
    for size in range(<int>NUM_SIZES):
        while spares.waiting[size] != NULL:
            memcpy(&following, spares.waiting[size], sizeof(following))
            free(spares.waiting[size])
            spares.waiting[size] = following
    leave(spares)


cdef void leave(Spares* spares) noexcept nogil:
    spares.users -= 1
    if spares.users == 0:
        free(spares)


cdef int size_of(size_t cap) noexcept nogil:
    """log2 of a size that is kept, else -1."""
    cdef int size = 14
    while (<size_t>1 << size) < cap and size < NUM_SIZES - 1:
        size += 1
    return size if cap >= LEAST_BYTES and cap == <size_t>1 << size else -1


cdef void give_back(Spares* spares, Buffer* memory) noexcept nogil:
    cdef int size = size_of(memory.cap)
    if size < 0 or spares.closed or <int64_t>(spares.bytes + memory.cap) > spares.most_waiting:
        release(memory)
        return
    memcpy(memory.data, &spares.waiting[size], sizeof(void*))
    spares.waiting[size] = memory.data
    spares.bytes += memory.cap
    memset(memory, 0, sizeof(Buffer))


cdef void find_room(Spares* spares, Buffer* memory, size_t num) noexcept nogil:
    """Room for about `num` bytes, out of what waits or new; none where memory is refused or `num` is small."""
    cdef int size = 0
    if num < LEAST_BYTES:
        return
    while size < NUM_SIZES - 1 and (<size_t>1 << size) < num:
        size += 1
    if spares.waiting[size] == NULL:
        reserve(memory, num)
        return
    memory.data = <unsigned char*>spares.waiting[size]
    memory.cap = <size_t>1 << size
    memcpy(&spares.waiting[size], memory.data, sizeof(void*))
    spares.bytes -= memory.cap


cdef class Block:
    """Memory of a taken column, readable through the buffer protocol; goes back with its last reader."""

    cdef Buffer memory
    cdef Spares* spares
    cdef bint waits

    def __dealloc__(self):
        if self.waits:
            give_back(self.spares, &self.memory)
        else:
            release(&self.memory)
        if self.spares != NULL:
            leave(self.spares)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.memory.data, <Py_ssize_t>self.memory.len, 1, flags)

    def __len__(self):
        return self.memory.len


cdef object hand_over(Spares* spares, Buffer* memory, size_t num, bint another):
    """The first `num` bytes of the buffer as an object that owns them; the buffer is empty then, and has room for as
    much again if there shall be `another` like it."""
    cdef Block block = Block.__new__(Block)
    block.memory = memory[0]
    block.memory.len = num
    block.spares = spares
    block.waits = another
    spares.users += 1
    memset(memory, 0, sizeof(Buffer))
    # The buffer protocol wants a pointer even for nothing.
    if block.memory.data == NULL and not reserve(&block.memory, 64):
        raise MemoryError
    if another:
        find_room(spares, memory, num)
    return block
