"""TODO model/declarations"""
