LINK_TYPES: tuple[str, ...]
PACKET_VERDICTS: tuple[str, ...]
