# cython: language_level=3
# Made by `python -m tests.house.declared`: of every struct and enum of the core.

cdef extern from *:
    """
    #define KWSNIFF_SHAPES 0x1c9388e955d9fa8bull
    """
    const unsigned long long KWSNIFF_SHAPES
