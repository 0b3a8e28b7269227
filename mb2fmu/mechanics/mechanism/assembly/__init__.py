"""Assembly of a mechanism at its start: close the loops, solve for initial speeds, find conserved quantities.

Input: ``Mechanism`` with fixed and guessed start values. Output: start values that satisfy all constraints; numeric
values of momenta and energy; the forces that are discontinuous.

Promises: fixed start values stay; guesses select the assembly branch; if a loop stays open, the error gives the reason.
Must not: change the equations, or choose another branch silently.
"""
