"""Connections that appear twice: before and behind a proxy, or captured at two points."""
