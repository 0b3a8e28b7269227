"""TODO model/sources"""
