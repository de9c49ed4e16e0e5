# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0x094cc5b069c51975ull
    """
    const unsigned long long KWSNIFF_SHAPES
