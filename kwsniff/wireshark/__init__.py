"""What tables say of a packet, in Wireshark and tshark: an index of packets, and the plugin that reads it."""
