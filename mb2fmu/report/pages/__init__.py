"""TODO report/pages"""
