"""The compiled vector steps of conjugate gradients: plain arrays in and out, no checks.

`tests/operators/vector_reference.py` has the slow twin of each.

Vectors are rows here, (m, n), so that each one's numbers stand side by side and several are worked on at once. Only
what goes into a product of the operator and comes out of it may have another order. Each loop reads every vector once,
where NumPy would make a pass per operation. They work on entries first..last of all vectors, so that threads can share
them, and add to sums that belong to one thread.
"""

import numpy as np

from saccade._core.compiled import Unsigned, compiled

U, NO_SIGN = Unsigned, np.int64(2**63 - 1)
ENTRIES = 256  # that go vector by vector: all that is done with them finds them in the first-level cache
sums_may_regroup = compiled(fastmath={"reassoc", "contract"})  # so that they run in parallel lanes


@sums_may_regroup
def finish_product(Kp, noise, p, first, last, q, sums):
    """q = K p + N p, given K p; sums_j += p·q of vector j."""
    shared = len(noise) == 1
    for start in range(first, last, ENTRIES):
        end = min(start + ENTRIES, last)
        for j in range(len(p)):
            given, N, a, b = Kp[j, start:end], noise[0 if shared else j, start:end], p[j, start:end], q[j, start:end]
            total = 0.0
            for i in range(U(a.size)):
                value = given[i] + N[i] * a[i]
                b[i] = value
                total += a[i] * value
            sums[j] += total


@sums_may_regroup
def descend(step, q, u, smoothed, first, last, r, s, sums):
    """r −= step q; then sums += (r·r, r·u), and where smoothed also (gap·gap, s·gap) for gap = s − r.

    u is one vector for all; gap is what parts the residual from its smoothed twin.
    """
    for start in range(first, last, ENTRIES):
        end = min(start + ENTRIES, last)
        one = u[0, start:end]
        for j in range(len(q)):
            a, b, c = q[j, start:end], r[j, start:end], s[j, start:end]
            for i in range(U(a.size)):
                b[i] -= step[j] * a[i]
            length = along = 0.0
            for i in range(U(a.size)):
                length += b[i] * b[i]
                along += b[i] * one[i]
            sums[0, j] += length
            sums[1, j] += along
            if smoothed[j]:
                length = along = 0.0
                for i in range(U(a.size)):
                    gap = c[i] - b[i]
                    length += gap * gap
                    along += c[i] * gap
                sums[2, j] += length
                sums[3, j] += along


@sums_may_regroup
def advance(step, share, beta, along, z, u, r, smoothed, first, last, x, y, s, p, copy, worst):
    """x += step p, then p = z − along u + beta p, and a copy of p for the product; worst_j = max |r| of vector j.

    Where smoothed, y += share (x − y) and s += share (r − s), and the worst is that of s. `worst` holds the bits of
    floats that are not negative: they have the order of the numbers, NaN above all, and compare in parallel lanes.
    Short loops one after the other: between more than four arrays LLVM gives up asking whether they overlap.
    """
    for start in range(first, last, ENTRIES):
        end = min(start + ENTRIES, last)
        one = u[0, start:end]
        for j in range(len(p)):
            X, P, Z, R, out = x[j, start:end], p[j, start:end], z[j, start:end], r[j, start:end], copy[j, start:end]
            for i in range(U(P.size)):
                X[i] += step[j] * P[i]
            for i in range(U(P.size)):
                P[i] = Z[i] - along[j] * one[i] + beta[j] * P[i]
            for i in range(U(P.size)):
                out[i] = P[i]
            if smoothed[j]:
                Y, S = y[j, start:end], s[j, start:end]
                for i in range(U(P.size)):
                    Y[i] += share[j] * (X[i] - Y[i])
                for i in range(U(P.size)):
                    S[i] += share[j] * (R[i] - S[i])
                R = S
            bits, most = R.view(np.int64), worst[j]
            for i in range(U(P.size)):
                most = max(most, bits[i] & NO_SIGN)
            worst[j] = most


@sums_may_regroup
def inner(r, z, first, last, sums):
    """sums_j += r·z of vector j; r may be one vector for all."""
    shared = len(r) == 1
    for j in range(len(z)):
        a, b = r[0 if shared else j, first:last], z[j, first:last]
        total = 0.0
        for i in range(U(b.size)):
            total += a[i] * b[i]
        sums[j] += total


@compiled()
def take_out(R, u, along, first, last, z):
    """z = R − u along: what is left of each vector without its part along the one of u."""
    own = u[0, first:last]
    for j in range(len(z)):
        a, b = R[j, first:last], z[j, first:last]
        for i in range(U(b.size)):
            b[i] = a[i] - own[i] * along[j]
