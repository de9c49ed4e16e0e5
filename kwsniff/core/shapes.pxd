# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0xa6c5f2b625c4eb2aull
    """
    const unsigned long long KWSNIFF_SHAPES
