"""TODO validation/experiment"""
