"""The master: components stepped together, energy accounted for, order measured."""
