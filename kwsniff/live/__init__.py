"""What Kafka is doing now: an interface followed for as long as one likes, in bounded memory."""
