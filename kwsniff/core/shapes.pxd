# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0x22a94fbb9dc06daaull
    """
    const unsigned long long KWSNIFF_SHAPES
