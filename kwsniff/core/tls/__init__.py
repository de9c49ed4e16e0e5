"""What TLS shows without keys, and the plaintext of its records where there are keys."""
