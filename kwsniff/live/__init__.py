"""Live capture of Kafka traffic on an interface, without a time limit and in bounded memory."""
