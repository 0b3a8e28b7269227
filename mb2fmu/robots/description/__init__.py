"""TODO robots/description"""
