"""What TLS shows without keys, and the plaintext that tshark makes of it with keys."""
