"""TODO validation/bounds"""
