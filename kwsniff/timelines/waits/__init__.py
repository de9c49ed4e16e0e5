"""What a call waited for at the broker, proven by other connections."""
