"""TODO mechanics"""
