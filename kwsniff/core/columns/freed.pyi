def give_memory_back() -> None:
    """Has the C library give memory that was freed back to the system."""
