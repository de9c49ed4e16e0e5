"""What brokers say of the cluster: topics, leaders, names of topics."""
