"""`kwsniff live` and `kwsniff.sniff`: on real interfaces with real clients, and on sources made of files."""
