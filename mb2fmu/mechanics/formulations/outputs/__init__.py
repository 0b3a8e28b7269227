"""TODO mechanics/formulations/outputs."""
