"""TODO audit/behaviour/runner"""
