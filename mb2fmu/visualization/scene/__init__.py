"""TODO visualization/scene"""
