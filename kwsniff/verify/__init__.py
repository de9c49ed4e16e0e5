"""kwsniff compared with tshark, message by message."""
