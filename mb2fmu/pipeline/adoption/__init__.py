"""Adoption: from a user's script to a model file.

Input: a script. Output: the text of a model file that fetches the script's mechanics and declares all of its
quantities, and notes on what could not be found (``adopt``).

Promises: the script runs in a process of its own with a time limit; nothing but the model file is left behind; what
the script does not say is written as a line to fill in. Must not: run the script in this process, or change it.
"""
