# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Files that become shorter while they are mapped, as rotation does it.

Rules
  1. Touching a page of a mapping that its file no longer has raises SIGBUS, which ends a process. Here it becomes zeroes,
     and whoever mapped the file is told: what was read there is not to be believed.
  2. A SIGBUS anywhere else is what it was before.

    file    | there | cut off          |
    mapping | there | zeroes, told of  |     one page at a time, when it is touched
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <signal.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>

    enum { KWSNIFF_GUARDS = 64 };
    static struct { char *volatile at; volatile size_t num; volatile int holes; } kwsniff_guards[KWSNIFF_GUARDS];
    static struct sigaction kwsniff_before;
    static int kwsniff_ready;
    static uintptr_t kwsniff_page;

    static void kwsniff_fill_hole(int number, siginfo_t *info, void *unused) {
        char *at = (char *)((uintptr_t)info->si_addr & ~(kwsniff_page - 1));
        (void)unused;
        for (int i = 0; i < KWSNIFF_GUARDS; i++) {
            char *begin = kwsniff_guards[i].at;
            if (begin != NULL && at >= begin && (size_t)(at - begin) < kwsniff_guards[i].num) {
                if (mmap(at, kwsniff_page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at) {
                    kwsniff_guards[i].holes = 1;
                    return;
                }
            }
        }
        sigaction(number, &kwsniff_before, NULL);       /* the instruction is tried again, and fails as it did */
    }

    static int kwsniff_guard(void *at, size_t num) {
        if (!kwsniff_ready) {
            struct sigaction action;
            memset(&action, 0, sizeof action);
            kwsniff_page = (uintptr_t)sysconf(_SC_PAGESIZE);
            action.sa_sigaction = kwsniff_fill_hole;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK;
            if (sigaction(SIGBUS, &action, &kwsniff_before) != 0)
                return -1;
            kwsniff_ready = 1;
        }
        for (int i = 0; i < KWSNIFF_GUARDS; i++)
            if (kwsniff_guards[i].at == NULL) {
                kwsniff_guards[i].num = num;
                kwsniff_guards[i].holes = 0;
                kwsniff_guards[i].at = (char *)at;
                return i;
            }
        return -1;
    }

    static int kwsniff_holes(int guard) { return kwsniff_guards[guard].holes; }

    static void kwsniff_unguard(int guard) { kwsniff_guards[guard].at = NULL; }
    """
    int guard_pages "kwsniff_guard"(void* at, size_t num)
    int count_holes "kwsniff_holes"(int guard)
    void leave_pages "kwsniff_unguard"(int guard)


cdef class Guard:
    """As long as it is entered, `data`, a mapped file, can be read to its end, whatever becomes of the file."""

    cdef Py_buffer view
    cdef int number
    cdef bint entered

    def __cinit__(self, data):
        self.number = -1
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.entered = True
        self.number = guard_pages(self.view.buf, <size_t>self.view.len)

    def __dealloc__(self):
        self.leave()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    cdef leave(self):
        if self.number >= 0:
            leave_pages(self.number)
            self.number = -1
        if self.entered:
            PyBuffer_Release(&self.view)
            self.entered = False

    @property
    def has_holes(self):
        """Whether something was read that the file no longer has."""
        return self.number >= 0 and count_holes(self.number) != 0
