"""Turn SymPy expressions into sequences of numeric functions, for the reference only.

Input: expressions and symbols. Output: plans that evaluate them. Promises: shares nothing with the compiler of FMUs.
Must not: know mechanisms.
"""
