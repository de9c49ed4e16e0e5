"""Kafka message layouts, one file per API."""
