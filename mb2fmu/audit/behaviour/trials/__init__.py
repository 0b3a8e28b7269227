"""TODO audit/behaviour/trials"""
