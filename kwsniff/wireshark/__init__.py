"""Calls, latency and findings of packets in Wireshark and tshark: an index, and the plugin that reads it."""
