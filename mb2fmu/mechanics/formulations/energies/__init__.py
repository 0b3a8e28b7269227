"""TODO mechanics/formulations/energies."""
