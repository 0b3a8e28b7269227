"""From a program to a whole FMU in memory, and to source code of other languages.

Input: ``DerivationResult`` and options. Output: ``FmuBuildResult`` with its files. Promises: equal input gives equal
bytes. Must not: write results or validate.
"""
