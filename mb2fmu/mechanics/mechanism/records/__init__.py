"""TODO mechanics/mechanism/records"""
