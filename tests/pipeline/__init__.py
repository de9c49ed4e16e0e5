"""Captures in, tables out: what kwsniff says against what the generator and other dissectors know."""
