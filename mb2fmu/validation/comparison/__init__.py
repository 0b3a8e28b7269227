"""TODO validation/comparison"""
