"""TODO validation/reference"""
