"""The master: steps components together, accounts for energy, estimates the order.

Input: resolved connections and components. Output: values over time, energy balances, and estimates of the error.

Promises: the same system gives the same bits; a step that a component refuses is reported with its name.

Must not: read files, or know how the components' FMUs were made.
"""
