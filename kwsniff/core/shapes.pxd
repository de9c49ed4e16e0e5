# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0x90bc38092b4be89eull
    """
    const unsigned long long KWSNIFF_SHAPES
