"""TODO validation/runs"""
