"""TODO report/figures"""
