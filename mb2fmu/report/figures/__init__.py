"""Charts and figures: as SVG inside pages, and as files by matplotlib.

Input: numbers over time, eigenvalues, cases of studies. Output: SVG texts and files; equal input gives equal bytes.
Promises: equal input gives equal bytes. Must not: compute results.
"""
