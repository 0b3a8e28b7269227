"""TODO mechanics/formulations/outputs"""
