"""TODO robots/tree"""
