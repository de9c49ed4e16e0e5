NAMES: dict[int, bytes]
