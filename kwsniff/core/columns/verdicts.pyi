ENUMS: dict[str, tuple[str, ...]]
