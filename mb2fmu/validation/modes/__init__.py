"""TODO validation/modes"""
