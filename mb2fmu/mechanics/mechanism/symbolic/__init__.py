"""TODO mechanics/mechanism/symbolic"""
