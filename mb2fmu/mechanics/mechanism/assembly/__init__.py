"""TODO mechanics/mechanism/assembly"""
