"""What a release of Kafka adds, written into dissectors/kafka. `python -m tests.layout.release` says how."""
