"""TODO robots/outputs"""
