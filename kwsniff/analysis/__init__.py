"""An analysis from files to its result, and what a run found in all."""
