"""Contracts of the house: what several rooms rely on and no room's own tests would notice."""
