"""TODO mechanics/mechanism/numeric"""
