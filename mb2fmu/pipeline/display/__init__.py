"""TODO pipeline/display"""
