"""TODO systems/exports"""
