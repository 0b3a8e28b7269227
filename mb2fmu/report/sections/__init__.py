"""TODO report/sections"""
