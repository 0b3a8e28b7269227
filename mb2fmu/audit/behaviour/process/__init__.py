"""TODO audit/behaviour/process"""
