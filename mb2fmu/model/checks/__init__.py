"""TODO model/checks"""
