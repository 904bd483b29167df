"""Rows of a few numbers as one machine vector: the only place that speaks LLVM.

The loops of this room move short rows (one number per right-hand side) between large arrays. Written as a plain inner
loop, LLVM must assume that the arrays overlap and moves the numbers one at a time. `fma_row` loads, multiplies, adds
and stores a whole row at once; the number of lanes is the length of a tuple, hence known when the loop is compiled.
Measured at n = 300,000 x 1,000: eight float32 columns cost 2.1 times one column, against 10 times without it.

`add_up`, `step_down`, `sum_steps`, `add_squares_off` and `sum_minima` are whole loops, because their running sum must
stay in registers: through memory, each addition waits for the last one to be stored and loaded, twice the time.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from saccade._core.compiled import PLAIN
from saccade.operators import plain_simd
from saccade.operators.plain_simd import NODE


def vector(definition):
    """A Numba intrinsic, or its plain twin where nothing is compiled and no intrinsic could be called."""
    return getattr(plain_simd, definition.__name__) if PLAIN else intrinsic(definition)


def _rows(context, builder, array_type, array, width):
    """Number of the row -> pointer to it, as a vector; and the bytes it is aligned to."""
    number = context.get_data_type(array_type.dtype)
    data = context.make_array(array_type)(context, builder, array).data

    def pointer(row):
        offset = builder.mul(row, ir.Constant(row.type, width))
        return builder.bitcast(builder.gep(data, [offset]), ir.VectorType(number, width).as_pointer())

    return pointer, context.get_abi_sizeof(number)


def _splat(builder, scalar, width):
    vector = ir.Constant(ir.VectorType(scalar.type, width), ir.Undefined)
    for lane in range(width):
        vector = builder.insert_element(vector, scalar, ir.Constant(ir.IntType(32), lane))
    return vector


def _check(*arrays):
    for array in arrays:
        if array.ndim != 2 or array.layout != "C" or array.dtype != arrays[0].dtype:
            raise TypingError("lanes need C-contiguous 2-D arrays of one dtype")


@vector
def fma_row(typingctx, dst, i, a, j, s, b, k, lanes):
    """dst[i, :] = a[j, :] + s * b[k, :] for C-contiguous (rows, lanes) arrays of one dtype."""
    _check(dst, a, b)
    width = len(lanes)
    signature = types.void(dst, types.intp, a, types.intp, dst.dtype, b, types.intp, lanes)

    def codegen(context, builder, sig, args):
        _, i_, _, j_, s_, _, k_, _ = args
        at, align = zip(*(_rows(context, builder, sig.args[n], args[n], width) for n in (0, 2, 5)), strict=True)
        left, right = builder.load(at[1](j_), align=align[1]), builder.load(at[2](k_), align=align[2])
        total = builder.fadd(left, builder.fmul(_splat(builder, s_, width), right))
        builder.store(total, at[0](i_), align=align[0])
        return context.get_dummy_value()

    return signature, codegen


@vector
def add_rows(typingctx, dst, i, T, places, lanes):
    """dst[i, :] += T[p, :] for every p of a tuple, in this order: the row is loaded and stored once for all."""
    _check(dst, T)
    width = len(lanes)
    signature = types.void(dst, types.intp, T, types.UniTuple(types.intp, len(places)), lanes)

    def codegen(context, builder, sig, args):
        (dst_at, align), (T_at, _) = (_rows(context, builder, sig.args[n], args[n], width) for n in (0, 2))
        total = builder.load(dst_at(args[1]), align=align)
        for k in range(len(sig.args[3])):
            total = builder.fadd(total, builder.load(T_at(builder.extract_value(args[3], k)), align=align))
        builder.store(total, dst_at(args[1]), align=align)
        return context.get_dummy_value()

    return signature, codegen


@vector
def add_between(typingctx, dst, i, T, b, w, lanes):
    """dst[i, :] += (1 - w) * T[b, :] + w * T[b + 1, :]: the row is loaded and stored once, not twice."""
    _check(dst, T)
    width = len(lanes)
    signature = types.void(dst, types.intp, T, types.intp, dst.dtype, lanes)

    def codegen(context, builder, sig, args):
        _, i_, _, b_, w_, _ = args
        (dst_at, align), (T_at, _) = (_rows(context, builder, sig.args[n], args[n], width) for n in (0, 2))
        rest = builder.fsub(ir.Constant(w_.type, 1.0), w_)
        lower = builder.load(T_at(b_), align=align)
        upper = builder.load(T_at(builder.add(b_, ir.Constant(b_.type, 1))), align=align)
        total = builder.load(dst_at(i_), align=align)
        for share, row in ((rest, lower), (w_, upper)):
            part = builder.fmul(_splat(builder, share, width), row, flags=("contract",))  # with the sum: one step
            total = builder.fadd(total, part, flags=("contract",))
        builder.store(total, dst_at(i_), align=align)
        return context.get_dummy_value()

    return signature, codegen


@vector
def add_up(typingctx, C, V, rows, lanes):
    """C[p, :] = the sum of V[rows[q], :] over q >= p, for every p below rows.size."""
    _check(C, V)
    width = len(lanes)
    signature = types.void(C, V, rows, lanes)

    def codegen(context, builder, sig, args):
        C_at, align = _rows(context, builder, sig.args[0], args[0], width)
        V_at, _ = _rows(context, builder, sig.args[1], args[1], width)
        owners = context.make_array(sig.args[2])(context, builder, args[2])
        last = builder.sub(owners.nitems, ir.Constant(owners.nitems.type, 1))

        def at(place):
            p = builder.sub(last, place)
            row = builder.zext(builder.load(builder.gep(owners.data, [p])), p.type)
            return builder.load(V_at(row), align=align), p

        def put(p, total):
            builder.store(total, C_at(p), align=align)

        _running_sums(context, builder, sig.args[0].dtype, width, owners.nitems, at, put)
        return context.get_dummy_value()

    return signature, codegen


@vector
def step_down(typingctx, out, rows, steps, C, lanes):
    """out[rows[p], :] += the sum of steps[q] * C[q, :] over q <= p, for every p below rows.size."""
    _check(out, C)
    width = len(lanes)
    signature = types.void(out, rows, steps, C, lanes)

    def codegen(context, builder, sig, args):
        out_at, align = _rows(context, builder, sig.args[0], args[0], width)
        C_at, _ = _rows(context, builder, sig.args[3], args[3], width)
        owners, rises = (context.make_array(sig.args[n])(context, builder, args[n]) for n in (1, 2))
        number = context.get_data_type(sig.args[0].dtype)

        def at(p):
            rise = builder.load(builder.gep(rises.data, [p]))
            rise = rise if rise.type == number else builder.fpext(rise, number)
            return builder.fmul(_splat(builder, rise, width), builder.load(C_at(p), align=align)), p

        def put(p, total):
            row = builder.zext(builder.load(builder.gep(owners.data, [p])), p.type)
            builder.store(builder.fadd(builder.load(out_at(row), align=align), total), out_at(row), align=align)

        _running_sums(context, builder, sig.args[0].dtype, width, owners.nitems, at, put)
        return context.get_dummy_value()

    return signature, codegen


def _running_sums(context, builder, dtype, width, count, at, put):
    """put(p, the sum of the vectors so far) for all of them in turn; at(k) -> the k-th vector and its p.

    Four go together: only one addition of the four waits for the last four.
    """
    total = cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(context.get_data_type(dtype), width), None))
    two = ir.Constant(count.type, 2)
    fours = builder.lshr(count, two)
    with cgutils.for_range(builder, fours) as loop:
        first = builder.shl(loop.index, two)
        (a, p), (b, q), (c, r), (d, s) = (at(builder.add(first, ir.Constant(count.type, k))) for k in range(4))
        before, two_of = builder.load(total), builder.fadd(a, b)
        put(p, builder.fadd(before, a))
        put(q, builder.fadd(before, two_of))
        put(r, builder.fadd(before, builder.fadd(two_of, c)))
        builder.store(builder.fadd(before, builder.fadd(two_of, builder.fadd(c, d))), total)
        put(s, builder.load(total))
    done = builder.shl(fours, two)
    with cgutils.for_range(builder, builder.sub(count, done)) as loop:
        one, p = at(builder.add(done, loop.index))
        builder.store(builder.fadd(builder.load(total), one), total)
        put(p, builder.load(total))


@vector
def count_below(typingctx, values, first, x):
    """How many of values[first : first + NODE] are below x: one comparison of machine vectors."""
    signature = types.uint64(values, types.uint64, values.dtype)

    def codegen(context, builder, sig, args):
        number = context.get_data_type(sig.args[0].dtype)
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        node = builder.bitcast(builder.gep(data, [args[1]]), ir.VectorType(number, NODE).as_pointer())
        node = builder.load(node, align=context.get_abi_sizeof(number))
        below = builder.fcmp_ordered("<", node, _splat(builder, args[2], NODE))
        return builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(NODE))), ir.IntType(64))

    return signature, codegen


@vector
def sum_steps(typingctx, dst, steps, C, lanes):
    """dst[0, :] = the sum over p of steps[p] * C[p, :]."""
    _check(dst, C)
    width = len(lanes)
    signature = types.void(dst, steps, C, lanes)

    def codegen(context, builder, sig, args):
        dst_at, align = _rows(context, builder, sig.args[0], args[0], width)
        C_at, _ = _rows(context, builder, sig.args[2], args[2], width)
        rises = context.make_array(sig.args[1])(context, builder, args[1])
        zero = ir.Constant(ir.VectorType(context.get_data_type(sig.args[0].dtype), width), None)
        total = cgutils.alloca_once_value(builder, zero)
        builder.store(zero, total)
        with cgutils.for_range(builder, rises.nitems) as loop:
            rise = _splat(builder, builder.load(builder.gep(rises.data, [loop.index])), width)
            more = builder.fmul(rise, builder.load(C_at(loop.index), align=align))
            builder.store(builder.fadd(builder.load(total), more), total)
        builder.store(builder.load(total), dst_at(ir.Constant(rises.nitems.type, 0)), align=align)
        return context.get_dummy_value()

    return signature, codegen


@vector
def add_squares_off(typingctx, out, steps, C, slope, lanes):
    """out[p] += the sum over lanes of the square of e_p = e_{p-1} + steps[p] * (C[p, :] - slope[0, :]), from e = 0."""
    _check(C, slope)
    width = len(lanes)
    signature = types.void(out, steps, C, slope, lanes)

    def codegen(context, builder, sig, args):
        C_at, align = _rows(context, builder, sig.args[2], args[2], width)
        slope_at, _ = _rows(context, builder, sig.args[3], args[3], width)
        sums, rises = (context.make_array(sig.args[n])(context, builder, args[n]) for n in (0, 1))
        number = context.get_data_type(sig.args[2].dtype)
        zero = ir.Constant(ir.VectorType(number, width), None)
        off = cgutils.alloca_once_value(builder, zero)
        builder.store(zero, off)
        even = builder.load(slope_at(ir.Constant(rises.nitems.type, 0)), align=align)
        with cgutils.for_range(builder, rises.nitems) as loop:
            rise = _splat(builder, builder.load(builder.gep(rises.data, [loop.index])), width)
            more = builder.fmul(rise, builder.fsub(builder.load(C_at(loop.index), align=align), even))
            e = builder.fadd(builder.load(off), more)
            builder.store(e, off)
            place = builder.gep(sums.data, [loop.index])
            builder.store(builder.fadd(builder.load(place), _sum(builder, builder.fmul(e, e), width)), place)
        return context.get_dummy_value()

    return signature, codegen


def _sum(builder, vector, width):
    """The sum of a vector's numbers, halves first."""
    index = ir.IntType(32)
    while width > 1:
        half = width // 2
        halves = []
        for first in (0, half):
            mask = ir.Constant(ir.VectorType(index, half), [first + k for k in range(half)])
            halves.append(builder.shuffle_vector(vector, vector, mask))
        last = builder.extract_element(vector, ir.Constant(index, width - 1)) if width % 2 else None
        vector = builder.fadd(*halves)
        if last is not None:
            place = ir.Constant(index, 0)
            vector = builder.insert_element(vector, builder.fadd(builder.extract_element(vector, place), last), place)
        width = half
    return builder.extract_element(vector, ir.Constant(index, 0))


@vector
def sum_minima(typingctx, dst, panel, base, dims, values, lanes):
    """dst[0, :] = the sum over k of min(values[k], panel[dims[k] - base, :])."""
    _check(dst, panel)
    width = len(lanes)
    signature = types.void(dst, panel, types.intp, dims, values, lanes)

    def codegen(context, builder, sig, args):
        dst_at, align = _rows(context, builder, sig.args[0], args[0], width)
        panel_at, _ = _rows(context, builder, sig.args[1], args[1], width)
        rows, numbers = (context.make_array(sig.args[n])(context, builder, args[n]) for n in (3, 4))
        vector = ir.VectorType(context.get_data_type(sig.args[0].dtype), width)
        total = cgutils.alloca_once_value(builder, ir.Constant(vector, None))
        builder.store(ir.Constant(vector, None), total)
        with cgutils.for_range(builder, rows.nitems) as loop:
            row = builder.zext(builder.load(builder.gep(rows.data, [loop.index])), loop.index.type)
            left = _splat(builder, builder.load(builder.gep(numbers.data, [loop.index])), width)
            right = builder.load(panel_at(builder.sub(row, args[2])), align=align)
            least = builder.select(builder.fcmp_ordered("<", left, right), left, right)  # one instruction on x86
            builder.store(builder.fadd(builder.load(total), least), total)
        builder.store(builder.load(total), dst_at(ir.Constant(args[2].type, 0)), align=align)
        return context.get_dummy_value()

    return signature, codegen
