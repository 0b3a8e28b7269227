"""Backends: a program and an interface become files. Each backend is a folder and knows nothing of the others.

``emit/python`` and later ``emit/c`` print the equations, ``emit/xml`` the description; each offers ``emit``. No backend
touches the disk (but for its own templates), the clock or the environment.
"""
