"""TODO audit/behaviour/instance"""
