"""TODO mechanics/formulations/energies"""
