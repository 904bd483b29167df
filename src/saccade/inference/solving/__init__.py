"""Systems with K + N: α, the diagonal of the inverse, and the choice between a factor and conjugate gradients.

May import kernels, solvers and operators; no other folder of inference but leave_one_out.closed_form.
"""
