# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0x0b123d3a4911f055ull
    """
    const unsigned long long KWSNIFF_SHAPES
