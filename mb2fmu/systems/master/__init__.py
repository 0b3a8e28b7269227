"""The master: steps components together, accounts for energy, estimates the order."""
