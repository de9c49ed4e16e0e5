def give_memory_back() -> None:
    """Has the C library give memory that was freed back to the system."""

def keep_freed_memory() -> None:
    """Has the C library keep a few megabytes that were freed; for all of the process."""

def share_one_arena() -> None:
    """Has the C library take the memory of all threads to come from one place."""
