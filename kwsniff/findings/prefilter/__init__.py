"""Which rules can fire at all: counts kept while rows pass, so that `analyze` asks few rules."""
