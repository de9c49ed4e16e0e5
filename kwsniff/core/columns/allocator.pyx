# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Returns freed memory that the C library keeps to the system: rows come and go by the megabyte.

Rules
  1. Nothing in here knows whose it was; the caller that watches the process's size asks for it.
  2. Other libraries than glibc's are left alone.
"""

cdef extern from *:
    """
    #ifdef __GLIBC__
    #include <malloc.h>
    static void kwsniff_trim(void) { malloc_trim(0); }
    static void kwsniff_one_arena(void) { mallopt(M_ARENA_MAX, 1); }
    static void kwsniff_keep(void) { mallopt(M_MMAP_THRESHOLD, 32 << 20); mallopt(M_TRIM_THRESHOLD, 64 << 20); }
    #else
    static void kwsniff_trim(void) {}
    static void kwsniff_one_arena(void) {}
    static void kwsniff_keep(void) {}
    #endif
    """
    void trim "kwsniff_trim"() nogil
    void one_arena "kwsniff_one_arena"() nogil
    void keep "kwsniff_keep"() nogil


def give_memory_back():
    """Has the C library give memory that was freed back to the system; glibc keeps much of it."""
    with nogil:
        trim()


def keep_freed_memory():
    """Has the C library keep up to 64 MiB of what was freed for each arena: else growing columns are given
    back to the system, and asked for again, with every batch of rows."""
    keep()


def share_one_arena():
    """Has the C library take the memory of all threads to come from one place; glibc reserves 64 MiB of
    addresses for each otherwise."""
    one_arena()
