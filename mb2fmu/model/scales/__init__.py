"""TODO model/scales"""
