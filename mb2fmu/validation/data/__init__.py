"""TODO validation/data"""
