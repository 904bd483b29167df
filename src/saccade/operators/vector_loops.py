"""The compiled vector steps of conjugate gradients: plain arrays in and out, no checks.

`tests/operators/vector_reference.py` has the slow twin of each.

Each reads every vector once, where NumPy would make a pass per operation. They work on rows first..last, so that
threads can share them, and add to sums that belong to one thread.
"""

from saccade._core.compiled import compiled

ROWS = 256  # rows that go column by column: sums stay in registers, and the rows in the first-level cache
sums_may_regroup = compiled(fastmath={"reassoc"})  # so that they run in parallel lanes


@sums_may_regroup
def finish_product(Kp, noise, p, first, last, q, sums):
    """q = K p + N p, given K p; sums_j += p·q of column j."""
    shared = noise.shape[1] == 1
    for start in range(first, last, ROWS):
        for j in range(p.shape[1]):
            total = 0.0
            for i in range(start, min(start + ROWS, last)):
                q[i, j] = Kp[i, j] + noise[i, 0 if shared else j] * p[i, j]
                total += p[i, j] * q[i, j]
            sums[j] += total


@sums_may_regroup
def descend(step, p, q, first, last, x, r, s, sums):
    """x += step p, r −= step q; with the gap s − r to the smoothed residual, sums += (gap·gap, s·gap)."""
    for start in range(first, last, ROWS):
        for j in range(p.shape[1]):
            length = along = 0.0
            for i in range(start, min(start + ROWS, last)):
                x[i, j] += step[j] * p[i, j]
                r[i, j] -= step[j] * q[i, j]
                gap = s[i, j] - r[i, j]
                length += gap * gap
                along += s[i, j] * gap
            sums[0, j] += length
            sums[1, j] += along


@sums_may_regroup
def smooth(share, x, r, first, last, y, s, worst):
    """y += share (x − y), s += share (r − s); worst_j = max |s| of column j."""
    for start in range(first, last, ROWS):
        for j in range(x.shape[1]):
            most = worst[j]
            for i in range(start, min(start + ROWS, last)):
                y[i, j] += share[j] * (x[i, j] - y[i, j])
                s[i, j] += share[j] * (r[i, j] - s[i, j])
                most = max(most, abs(s[i, j]))
            worst[j] = most


@sums_may_regroup
def inner(r, z, first, last, sums):
    """sums_j += r·z of column j; r may have one column for all."""
    shared = r.shape[1] == 1
    for start in range(first, last, ROWS):
        for j in range(z.shape[1]):
            total = 0.0
            for i in range(start, min(start + ROWS, last)):
                total += r[i, 0 if shared else j] * z[i, j]
            sums[j] += total


@compiled()
def take_out(R, u, along, first, last, z):
    """z = R − u along: what is left of each column without its part along u."""
    for start in range(first, last, ROWS):
        for j in range(z.shape[1]):
            for i in range(start, min(start + ROWS, last)):
                z[i, j] = R[i, j] - u[i, 0] * along[j]


@compiled()
def turn(z, beta, first, last, p, copy):
    """p = z + beta p, and a copy of p in the precision of the product."""
    for start in range(first, last, ROWS):
        for j in range(p.shape[1]):
            for i in range(start, min(start + ROWS, last)):
                p[i, j] = z[i, j] + beta[j] * p[i, j]
                copy[i, j] = p[i, j]
