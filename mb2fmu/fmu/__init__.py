"""TODO fmu"""
