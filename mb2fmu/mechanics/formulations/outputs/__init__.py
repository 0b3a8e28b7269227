"""Outputs of the equations of motion: expressions for every quantity that the model requests.

Input: ``Mechanism`` and its named kinematics. Output: one scalar expression per output, with its unit.
Here are kinematic outputs, joint reactions, joint-space quantities and momenta of several bodies.

Promises: an output that cannot be given is refused with a reason and a remedy; vectors are in the inertial frame
unless another frame is requested. Must not: change the dynamics, or depend on one formulation.
"""
