"""TODO pipeline/derivation"""
