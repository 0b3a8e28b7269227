"""TODO compiler"""
