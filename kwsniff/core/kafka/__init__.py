"""Ordered bytes to frames, frames to requests and responses, these to calls."""
