"""A page on this machine that follows a model file while it is written: ``mb2fmu watch``.

Input: a model file. Output: a page at 127.0.0.1 with the mechanism in motion, plots and the verdict, renewed whenever
the file is saved: the motion first, the validation behind it.

Promises: only this machine can read the page; a wrong model is a message, and the last right motion stays; nothing is
left behind.

Must not: simulate or judge by itself; ``animate`` and the command ``run`` do.
"""
