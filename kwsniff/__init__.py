"""Packet-capture protocol analyzer for Apache Kafka."""
