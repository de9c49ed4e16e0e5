# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0x44688f1356eb34bfull
    """
    const unsigned long long KWSNIFF_SHAPES
