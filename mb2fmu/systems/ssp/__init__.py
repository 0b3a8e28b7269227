"""TODO systems/ssp"""
