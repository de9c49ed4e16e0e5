"""The compiled rooms: capture bytes in, tapes and columns out."""
