"""TODO pipeline/simulation"""
