"""The slow twin of every compiled loop of `saccade.operators`, in plain NumPy: each is its formula, written out.

Same names and arguments, but without scratch arrays and `lanes`, which only speed needs. Where a loop keeps running
sums, its twin sums the intersections min(ℓ, ℓ') of all pairs, so that both can be wrong only in different ways.
"""

from itertools import pairwise

import numpy as np

from saccade._core.arrays import Array


def rises(
    levels: Array,  # (entries,), ascending in each dimension
    starts: Array,  # (D+1,)
    first: int,
    last: int,
    steps: Array,  # (entries,)
) -> None:
    """Each level less the one before it in its dimension, first..last, where nothing is rounded."""
    for a, b in zip(starts[first:last], starts[first + 1 : last + 1], strict=True):
        steps[a:b] = np.diff(levels[a:b], prepend=0.0)


def sum_by_row(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    levels: Array,  # (entries,)
    first: int,
    last: int,
    out: Array,  # (n, 2)
) -> None:
    """out_i += Σ_d (ℓ_id, ℓ_id²) over dimensions first..last."""
    for k in range(starts[first], starts[last]):
        out[rows[k]] += levels[k], levels[k] ** 2


def count_placed(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    wanted: Array,  # (n,) bool
    first: int,
    last: int,
    counts: Array,  # (D,)
) -> None:
    """Entries of each dimension, first..last, whose row is wanted."""
    for d in range(first, last):
        counts[d] = wanted[rows[starts[d] : starts[d + 1]]].sum()


def pick_placed(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    values: Array,  # (entries,)
    wanted: Array,  # (n,) bool
    place: Array,  # (n,)
    heads: Array,  # (D+1,)
    first: int,
    last: int,
    row: Array,  # (picked,)
    value: Array,  # (picked,)
) -> None:
    """The new rows and the values of these entries."""
    for d in range(first, last):
        own = slice(starts[d], starts[d + 1])
        kept = wanted[rows[own]]
        row[heads[d] : heads[d + 1]] = place[rows[own]][kept]
        value[heads[d] : heads[d + 1]] = values[own][kept]


def sorted_product_one(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    steps: Array,  # (entries,) each entry's value less the one before it
    first: int,
    last: int,
    v: Array,  # (n,)
    out: Array,  # (n,)
) -> None:
    """out_i += Σ_d Σ_j min(x_id, x_jd) v_j over dimensions first..last."""
    sorted_product(starts, rows, steps, first, last, v[:, None], out[:, None])


def sorted_product(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    steps: Array,  # (entries,)
    first: int,
    last: int,
    V: Array,  # (n, m)
    out: Array,  # (n, m)
) -> None:
    """out_i += Σ_d Σ_j min(x_id, x_jd) V_j over dimensions first..last."""
    for d in range(first, last):
        own = rows[starts[d] : starts[d + 1]]
        x = np.cumsum(steps[starts[d] : starts[d + 1]])
        out[own] += np.minimum.outer(x, x) @ V[own]


def sorted_tables(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    steps: Array,  # (entries,)
    first: int,
    last: int,
    V: Array,  # (n, m)
    T: Array,  # (entries + D, m)
) -> None:
    """T_k = Σ_l min(x_k, x_l) V_row(l) over the entries l of k's own dimension; each dimension begins with zeros."""
    for d in range(first, last):
        entries = slice(starts[d], starts[d + 1])
        x = np.cumsum(steps[entries])
        T[starts[d] + d] = 0
        T[starts[d] + d + 1 : starts[d + 1] + d + 1] = np.minimum.outer(x, x) @ V[rows[entries]]


def _lines(x: Array, T: Array, places: Array) -> tuple[Array, Array]:
    """T at the nodes, and the lines between them less T, at every level of one dimension; T is 0 at the first, 0."""
    nodes = x[places]
    first = np.unique(nodes, return_index=True)[1]  # of equal nodes
    return T[places], np.column_stack([np.interp(x, nodes[first], column[places][first]) for column in T.T]) - T


def _put(found: Array, start: int, T: Array) -> None:
    """Write columns into blocks of columns."""
    for k, column in enumerate(found.T, start):
        T[k // T.shape[2], :, k % T.shape[2]] = column


def _pieces(values: Array, places: Array) -> Array:
    """The largest value after each node up to the next; 0 after the last."""
    return np.array([*(values[a + 1 : b + 1].max(initial=0.0) for a, b in pairwise(places)), 0.0])


def sorted_lines(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    steps: Array,  # (entries,)
    node_starts: Array,  # (D+1,)
    places: Array,  # (N,)
    first: int,
    last: int,
    V: Array,  # (blocks, n, lanes)
    columns: int,
    T: Array,  # (blocks, N, lanes)
    size: Array,  # (N,)
    lost: Array,  # (N,)
) -> None:
    """Exact tables at the nodes, their squared norms, and the largest squared distance from a line."""
    every = np.concatenate(list(V), axis=1)[:, : columns - 1]
    for d in range(first, last):
        own, entries = slice(node_starts[d], node_starts[d + 1]), slice(starts[d], starts[d + 1])
        x = np.append(0.0, np.cumsum(steps[entries]))
        exact = np.minimum.outer(x, x[1:]) @ every[rows[entries]]
        found, off = _lines(x, exact, places[own])
        _put(found, 1, T[:, own])
        size[own], lost[own] = (
            np.square(exact[places[own]]).sum(axis=1),
            _pieces(np.square(off).sum(axis=1), places[own]),
        )


def sorted_line_below(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    steps: Array,  # (entries,)
    node_starts: Array,  # (D+1,)
    places: Array,  # (N,)
    first: int,
    last: int,
    v: Array,  # (n,)
    T: Array,  # (N,)
    above: Array,  # (N,)
) -> None:
    """The same for one column, and how far its lines are above it."""
    for d in range(first, last):
        own, entries = slice(node_starts[d], node_starts[d + 1]), slice(starts[d], starts[d + 1])
        x = np.append(0.0, np.cumsum(steps[entries]))
        found, off = _lines(x, np.minimum.outer(x, x[1:]) @ v[rows[entries], None], places[own])
        T[own], above[own] = found[:, 0], _pieces(off[:, 0], places[own])


def binned_lines(
    level_starts: Array,  # (D+1,)
    steps: Array,  # (L,)
    node_starts: Array,  # (D+1,)
    places: Array,  # (N,)
    first: int,
    last: int,
    H: Array,  # (parts, L, lanes)
    start: int,
    end: int,
    T: Array,  # (blocks, N, lanes)
    size: Array,  # (N,)
    off: Array,  # (L,)
) -> None:
    """Exact tables of histograms at the nodes, size += their squared norms, off += squared distances from the lines."""
    for d in range(first, last):
        own, levels = slice(node_starts[d], node_starts[d + 1]), slice(level_starts[d], level_starts[d + 1])
        x = np.cumsum(steps[levels])
        exact = (np.minimum.outer(x, x) @ H[:, levels].sum(axis=0))[:, : end - start]
        found, away = _lines(x, exact, places[own])
        _put(found, start, T[:, own])
        size[own] += np.square(exact[places[own]]).sum(axis=1)
        off[levels] += np.square(away).sum(axis=1)


def binned_line_below(
    level_starts: Array,  # (D+1,)
    steps: Array,  # (L,)
    node_starts: Array,  # (D+1,)
    places: Array,  # (N,)
    first: int,
    last: int,
    H: Array,  # (parts, L, 1)
    T: Array,  # (N,)
    above: Array,  # (N,)
) -> None:
    """The same for one column, and how far its lines are above it."""
    for d in range(first, last):
        own, levels = slice(node_starts[d], node_starts[d + 1]), slice(level_starts[d], level_starts[d + 1])
        x = np.cumsum(steps[levels])
        found, off = _lines(x, np.minimum.outer(x, x) @ H[:, levels].sum(axis=0), places[own])
        T[own], above[own] = found[:, 0], _pieces(off[:, 0], places[own])


def mark_nodes(
    levels: Array,  # (L,)
    starts: Array,  # (D+1,)
    nodes: int,
    first: int,
    last: int,
    stays: Array,  # (L,) bool
) -> None:
    """The first and last level of each dimension, and the last one in each of nodes − 1 equal shares of Σ gap^0.4."""
    for d in range(first, last):
        own = levels[starts[d] : starts[d + 1]]
        total = np.cumsum(np.maximum(np.diff(own, prepend=own[:1]), 0.0) ** 0.4)
        piece = np.floor(total / max(total.max(initial=0.0), 1e-300) * (nodes - 1) * (1.0 - 1e-12))
        marks = np.diff(piece, append=-1.0) != 0
        marks[:1] = True
        stays[starts[d] : starts[d + 1]] = marks if own.size > nodes else True


def binned_largest(
    level_starts: Array,  # (D+1,)
    node_starts: Array,  # (D+1,)
    places: Array,  # (N,)
    first: int,
    last: int,
    off: Array,  # (L,)
    lost: Array,  # (N,)
) -> None:
    """The largest of `off` after each node up to the next."""
    for d in range(first, last):
        own = slice(node_starts[d], node_starts[d + 1])
        lost[own] = _pieces(off[level_starts[d] : level_starts[d + 1]], places[own])


def _entries(starts: Array, rows: Array | None, bases: Array, dims: int, block: int, d: int) -> tuple[slice, Array]:
    """Where the entries of dimension d in a block stand, and the rows that they belong to."""
    a, b = starts[block * dims + d], starts[block * dims + d + 1]
    within = np.arange(b - a) if rows is None else rows[a:b].astype(np.int64)
    return slice(a, b), bases[block] + within


def histogram(
    starts: Array,  # (blocks*D+1,)
    rows: Array | None,  # (entries,), None: a code for every row
    codes: Array,  # (entries,)
    bases: Array,  # (blocks+1,)
    level_starts: Array,  # (D+1,)
    first: int,
    last: int,
    V: Array,  # (n, m)
    H: Array,  # (levels, m)
) -> None:
    """H_d[b] += Σ_{i: c_id = b} V_i over the rows of blocks first..last."""
    dims = level_starts.size - 1
    for block in range(first, last):
        for d in range(dims):
            entries, i = _entries(starts, rows, bases, dims, block, d)
            np.add.at(H, level_starts[d] + codes[entries], V[i])


def histogram_of(
    starts: Array,  # (blocks*D+1,)
    codes: Array,  # (entries,), a code for every row
    bases: Array,  # (blocks+1,)
    level_starts: Array,  # (D+1,)
    cuts: Array,  # (blocks+1,)
    chosen: Array,  # (p,) ascending
    first: int,
    last: int,
    V: Array,  # (p, m)
    H: Array,  # (levels, m)
) -> None:
    """H_d[b] += Σ V_k over the chosen rows with code b, dimensions first..last."""
    dims = level_starts.size - 1
    for k, i in enumerate(chosen):
        block = np.searchsorted(cuts, k, side="right") - 1
        for d in range(first, last):
            H[level_starts[d] + codes[starts[block * dims + d] + i - bases[block]]] += V[k]


def look_up_at(
    starts: Array,  # (blocks*D+1,)
    codes: Array,  # (entries,), a code for every row
    bases: Array,  # (blocks+1,)
    level_starts: Array,  # (D+1,)
    cuts: Array,  # (blocks+1,)
    chosen: Array,  # (p,) ascending
    first: int,
    last: int,
    T: Array,  # (levels, m)
    out: Array,  # (p, m)
) -> None:
    """out_k += Σ_d T_d[c_id] for the chosen rows first..last."""
    dims = level_starts.size - 1
    for k in range(first, last):
        block = np.searchsorted(cuts, k, side="right") - 1
        at = starts[block * dims : (block + 1) * dims] + chosen[k] - bases[block]
        out[k] += T[level_starts[:-1] + codes[at]].sum(axis=0)


def cumulate(
    level_starts: Array,  # (D+1,)
    steps: Array,  # (levels,) each level less the one before it
    first: int,
    last: int,
    H: Array,  # (threads, levels, m)
) -> None:
    """H[0] becomes T_d[b] = Σ_b' min(ℓ_d[b], ℓ_d[b']) H_d[b'] of the summed histograms, dimensions first..last."""
    for d in range(first, last):
        levels = slice(level_starts[d], level_starts[d + 1])
        x = np.append(0.0, np.cumsum(steps[levels][1:]))
        H[0, levels] = np.minimum.outer(x, x) @ H[:, levels].sum(axis=0)


def look_up(
    starts: Array,  # (blocks*D+1,)
    rows: Array | None,  # (entries,), None: a code for every row
    codes: Array,  # (entries,)
    bases: Array,  # (blocks+1,)
    level_starts: Array,  # (D+1,)
    first: int,
    last: int,
    T: Array,  # (levels, m)
    out: Array,  # (n, m)
) -> None:
    """out_i += Σ_d T_d[c_id] over the rows of blocks first..last."""
    dims = level_starts.size - 1
    for block in range(first, last):
        for d in range(dims):
            entries, i = _entries(starts, rows, bases, dims, block, d)
            out[i] += T[level_starts[d] + codes[entries]]


def count_sparse(
    indptr: Array,  # (n+1,)
    indices: Array,  # (nnz,)
    data: Array,  # (nnz,)
    bases: Array,  # (blocks+1,)
    dims: int,
    first: int,
    last: int,
    counts: Array,  # (blocks*D,)
) -> None:
    """counts[block, d] += the positive entries of dimension d among the rows of the block."""
    for block in range(first, last):
        entries = slice(indptr[bases[block]], indptr[bases[block + 1]])
        positive = indices[entries][data[entries] > 0]
        counts[block * dims : (block + 1) * dims] += np.bincount(positive, minlength=dims)


def encode_sparse(
    indptr: Array,  # (n+1,)
    indices: Array,  # (nnz,)
    data: Array,  # (nnz,)
    bases: Array,  # (blocks+1,)
    borders: Array,  # (levels - D,)
    border_starts: Array,  # (D+1,)
    first: int,
    last: int,
    starts: Array,  # (blocks*D+1,)
    rows: Array,  # (entries,)
    codes: Array,  # (entries,)
) -> None:
    """Entry by entry of (block, d): the row within the block, and the number of borders of d that lie below x."""
    dims = border_starts.size - 1
    owner = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))  # the row of every number in `data`
    for block in range(first, last):
        for d in range(dims):
            here = (indices == d) & (data > 0) & (owner >= bases[block]) & (owner < bases[block + 1])
            entries = slice(starts[block * dims + d], starts[block * dims + d + 1])
            rows[entries] = owner[here] - bases[block]
            codes[entries] = np.searchsorted(borders[border_starts[d] : border_starts[d + 1]], data[here])


def encode_dense(
    X: Array,  # (rows of the block, D)
    borders: Array,  # (levels - D,)
    border_starts: Array,  # (D+1,)
    first: int,
    last: int,
    start: int,
    codes: Array,  # (entries,)
) -> None:
    """The code of every x_id, dimension after dimension from `start` on: the number of borders of d that lie below."""
    for d in range(first, last):
        at = start + d * X.shape[0]
        codes[at : at + X.shape[0]] = np.searchsorted(borders[border_starts[d] : border_starts[d + 1]], X[:, d])


def to_rows(
    X: Array,  # (n, D)
    indptr: Array,  # (n+1,)
    first: int,
    last: int,
    indices: Array,  # (entries,)
    data: Array,  # (entries,)
) -> None:
    """The places and values of the non-zeros of rows first..last."""
    for i in range(first, last):
        own = np.flatnonzero(X[i])
        indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]] = own, X[i, own]


def to_columns(
    indptr: Array,  # (n+1,)
    indices: Array,  # (nnz,)
    data: Array,  # (nnz,)
    bases: Array,  # (blocks+1,)
    first: int,
    last: int,
    fill: Array,  # (blocks, D), changed
    rows: Array,  # (positive entries,), changed
    values: Array,  # (positive entries,), changed
) -> None:
    """The positive entries of CSR row blocks first..last by dimension, from fill[block, d] on."""
    for block in range(first, last):
        for i in range(bases[block], bases[block + 1]):
            for k in range(indptr[i], indptr[i + 1]):
                if data[k] > 0:
                    at = fill[block, indices[k]]
                    rows[at], values[at] = i, data[k]
                    fill[block, indices[k]] += 1


def dense_to_columns(
    X: Array,  # (n, D)
    starts: Array,  # (D+1,)
    first: int,
    last: int,
    rows: Array,  # (positive entries,), changed
    values: Array,  # (positive entries,), changed
) -> None:
    """The positive entries of dimensions first..last of a dense matrix."""
    for d in range(first, last):
        own = np.flatnonzero(X[:, d] > 0)
        rows[starts[d] : starts[d + 1]], values[starts[d] : starts[d + 1]] = own, X[own, d]


def sort_columns(starts: Array, first: int, last: int, bits: Array, rows: Array) -> None:
    """Each dimension's entries in ascending order."""
    for d in range(first, last):
        column = slice(starts[d], starts[d + 1])
        order = np.argsort(bits[column], kind="stable")
        bits[column], rows[column] = bits[column][order], rows[column][order]


def column_max(
    indices: Array,  # (nnz,)
    data: Array,  # (nnz,)
    first: int,
    last: int,
    out: Array,  # (D,)
) -> None:
    """out_d = max(out_d, values of dimension d) over the entries first..last."""
    np.maximum.at(out, indices[first:last], data[first:last])


def distinct(
    bits: Array,  # (k,) int64
    found: Array,  # (limit,) int64
) -> int:
    """Write the distinct positive numbers to `found`; returns how many, 0 when more than fit."""
    every = np.unique(bits[bits > 0])
    count = every.size if every.size <= found.size else 0
    found[:count] = every[:count]
    return count


def weighted_squares(
    K: Array,  # (n, b)
    weight: Array,  # (n,)
    first: int,
    last: int,
    out: Array,  # (b,)
) -> None:
    """out_j += Σ_i weight_i K_ij², columns first..last."""
    out[first:last] += weight @ np.square(K[:, first:last])


def intersect(
    cuts: Array,  # (blocks+1, n)
    indices: Array,  # (entries,)
    data: Array,  # (entries,)
    z_cuts: Array,  # (blocks+1, m)
    z_indices: Array,
    z_data: Array,
    upper: bool,
    first: int,
    last: int,
    out: Array,  # (n, m)
) -> None:
    """out_ij += Σ_d min(X_id, Z_jd) for all i, j; the loop's panels first..last together are all of them."""
    D = int(max(indices.max(initial=0), z_indices.max(initial=0))) + 1
    X, Z = np.zeros((cuts.shape[1], D)), np.zeros((z_cuts.shape[1], D))
    X[np.repeat(np.arange(len(X)), cuts[-1] - cuts[0]), indices] = data
    Z[np.repeat(np.arange(len(Z)), z_cuts[-1] - z_cuts[0]), z_indices] = z_data
    out += np.minimum(X[:, None, :], Z[None, :, :]).sum(axis=2)


def falls(
    starts: Array,  # (D+1,)
    first: int,
    last: int,
    G: Array,  # (entries,)
) -> None:
    """Each number less the next of its dimension, first..last."""
    for a, b in zip(starts[first:last], starts[first + 1 : last + 1], strict=True):
        G[a:b] = -np.diff(G[a:b], append=0.0)


def sorted_moments(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    first: int,
    last: int,
    left: Array,  # (n, m)
    right: Array,  # (n, m), or no rows: the same as left
    G: Array,  # (entries,)
) -> None:
    """G[k] += Σ_m leftᵀ_m c cᵀ right_m, c the rows of entry k and of those after it in its dimension."""
    right = right if right.size else left
    for d in range(first, last):
        for k in range(starts[d], starts[d + 1]):
            own = rows[k : starts[d + 1]]
            G[k] += left[own].sum(axis=0) @ right[own].sum(axis=0)


def sorted_matrix_moments(
    starts: Array,  # (D+1,)
    rows: Array,  # (entries,)
    first: int,
    last: int,
    A: Array,  # (n, n)
    G: Array,  # (entries,)
) -> None:
    """G[k] = cᵀAc, c as in `sorted_moments`."""
    for d in range(first, last):
        for k in range(starts[d], starts[d + 1]):
            own = rows[k : starts[d + 1]]
            G[k] = A[np.ix_(own, own)].sum()


def binned_moments(
    level_starts: Array,  # (D+1,)
    first: int,
    last: int,
    A: Array,  # (levels, m)
    B: Array,  # (levels, m)
    same: bool,
    G: Array,  # (levels,)
) -> None:
    """G_d[b] += Σ_m of the sum of A over b' ≥ b times that of B, for b > 0; `same` says that B is A."""
    for d in range(first, last):
        for b in range(level_starts[d] + 1, level_starts[d + 1]):
            above = slice(b, level_starts[d + 1])
            G[b] += A[above].sum(axis=0) @ B[above].sum(axis=0)
