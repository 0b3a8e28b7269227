"""Energies of a mechanism: kinetic and potential energy, power of the loads, first integrals.

Input: ``Mechanism`` and its named kinematics. Output: energies in J, powers in W, conserved quantities.

Promises: a potential energy is used only if its derivatives agree with the generalized forces at random points; a load
without a known potential is named. Must not: guess an energy that was not confirmed, or change the dynamics.
"""
