"""Tables to judgements: rules with proof, upgrades, comparisons, and SQL of users."""
