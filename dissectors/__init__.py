"""What the bytes mean, as text."""
