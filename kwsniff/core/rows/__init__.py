"""What becomes a row of a table, and when."""
