"""Layouts of servers that are not Apache Kafka, one folder per product."""
