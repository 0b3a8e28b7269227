"""TODO robots/joints"""
