def give_memory_back() -> None:
    """Has the C library give memory that was freed back to the system."""

def share_one_arena() -> None:
    """Has the C library take the memory of all threads to come from one place."""
