# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0xa6a1be3e7c4eb8daull
    """
    const unsigned long long KWSNIFF_SHAPES
