"""TODO pipeline/fmu_build."""
