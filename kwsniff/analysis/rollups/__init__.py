"""What a summary counts: latency by part, errors, TCP events, TLS."""
