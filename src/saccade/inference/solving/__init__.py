"""Systems with K + N: α, the diagonal of the inverse, closed forms of both, and the choice of a factor or iterations.

May import kernels, solvers and operators; no other folder of inference.
"""
