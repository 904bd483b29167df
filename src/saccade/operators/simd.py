"""Rows of a few numbers as one machine vector: the only place that speaks LLVM.

The loops of this room move short rows (one number per right-hand side) between large arrays. Written as a plain inner
loop, LLVM must assume that the arrays overlap and moves the numbers one at a time. `fma_row` loads, multiplies, adds
and stores a whole row at once; the number of lanes is the length of a tuple, hence known when the loop is compiled.
Measured at n = 300,000 x 1,000: eight float32 columns cost 2.1 times one column, against 10 times without it.

`add_up`, `step_down`, `sum_steps`, `add_squares_off` and `sum_minima` are whole loops, because their running sum must
stay in registers: through memory, each addition waits for the last one to be stored and loaded, twice the time.

The docstrings of plain_simd.py say what each one does.
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


def _code(build, *arguments, returns=types.void):
    """What Numba wants of an intrinsic: its signature, and what writes its code.

    `build` is given the builder and the arguments but for the lanes, matrices as `_Rows` and vectors as `_Column`.
    """
    matrices = [kind for kind in arguments if isinstance(kind, types.Array) and kind.ndim != 1]
    for kind in matrices:
        if kind.ndim != 2 or kind.layout != "C" or kind.dtype != matrices[0].dtype:
            raise TypingError("lanes need C-contiguous 2-D arrays of one dtype")
    lanes = arguments[-1] if matrices else ()

    def codegen(context, builder, signature, values):
        given = []
        for kind, value in zip(signature.args, values, strict=True):
            if kind in matrices:
                value = _Rows(context, builder, kind, value, len(lanes))
            elif isinstance(kind, types.Array):
                value = _Column(context, builder, kind, value)
            given.append(value)
        found = build(builder, *(given[:-1] if matrices else given))
        return context.get_dummy_value() if found is None else found

    return returns(*arguments), codegen


class _Column:
    """The numbers of a vector, one by one."""

    def __init__(self, context, builder, kind, value):
        self.builder, self.array = builder, context.make_array(kind)(context, builder, value)
        self.size, self.number = self.array.nitems, context.get_data_type(kind.dtype)
        self.align = context.get_abi_sizeof(self.number)

    def at(self, place):
        return self.builder.gep(self.array.data, [place])

    def load(self, place):
        return self.builder.load(self.at(place))

    def index(self, place, like):
        """The number there, which is not negative, as an integer of another's type."""
        return self.builder.zext(self.load(place), like.type)


class _Rows(_Column):
    """The rows of a matrix, each as one vector."""

    def __init__(self, context, builder, kind, value, width):
        super().__init__(context, builder, kind, value)
        self.width, self.vector = width, ir.VectorType(self.number, width)
        self.zero = ir.Constant(self.vector, None)

    def at(self, row):
        start = super().at(self.builder.mul(row, ir.Constant(row.type, self.width)))
        return self.builder.bitcast(start, self.vector.as_pointer())

    def load(self, row):
        return self.builder.load(self.at(row), align=self.align)

    def store(self, vector, row):
        self.builder.store(vector, self.at(row), align=self.align)

    def splat(self, scalar):
        return _splat(self.builder, scalar, self.width)


def _splat(builder, scalar, width):
    vector = ir.Constant(ir.VectorType(scalar.type, width), ir.Undefined)
    for lane in range(width):
        vector = builder.insert_element(vector, scalar, ir.Constant(ir.IntType(32), lane))
    return vector


@vector
def fma_row(typingctx, dst, i, a, j, s, b, k, lanes):
    def build(builder, dst, i, a, j, s, b, k):
        left, right = a.load(j), b.load(k)
        dst.store(builder.fadd(left, builder.fmul(dst.splat(s), right)), i)

    return _code(build, dst, types.intp, a, types.intp, dst.dtype, b, types.intp, lanes)


@vector
def add_rows(typingctx, dst, i, T, places, lanes):
    def build(builder, dst, i, T, some):
        total = dst.load(i)
        for k in range(len(places)):
            total = builder.fadd(total, T.load(builder.extract_value(some, k)))
        dst.store(total, i)

    return _code(build, dst, types.intp, T, types.UniTuple(types.intp, len(places)), lanes)


@vector
def add_between(typingctx, dst, i, T, b, w, lanes):
    def build(builder, dst, i, T, b, w):
        rest = builder.fsub(ir.Constant(w.type, 1.0), w)
        lower, upper = T.load(b), T.load(builder.add(b, ir.Constant(b.type, 1)))
        total = dst.load(i)
        for share, row in ((rest, lower), (w, upper)):
            part = builder.fmul(dst.splat(share), row, flags=("contract",))  # with the sum: one step
            total = builder.fadd(total, part, flags=("contract",))
        dst.store(total, i)

    return _code(build, dst, types.intp, T, types.intp, dst.dtype, lanes)


@vector
def add_up(typingctx, C, V, rows, lanes):
    def build(builder, C, V, rows):
        last = builder.sub(rows.size, ir.Constant(rows.size.type, 1))

        def at(place):
            p = builder.sub(last, place)
            return V.load(rows.index(p, p)), p

        _running_sums(builder, C, rows.size, at, C.store)

    return _code(build, C, V, rows, lanes)


@vector
def step_down(typingctx, out, rows, steps, C, lanes):
    def build(builder, out, rows, steps, C):
        def at(p):
            rise = steps.load(p)
            rise = rise if rise.type == out.number else builder.fpext(rise, out.number)
            return builder.fmul(out.splat(rise), C.load(p)), p

        def put(total, p):
            row = rows.index(p, p)
            out.store(builder.fadd(out.load(row), total), row)

        _running_sums(builder, out, rows.size, at, put)

    return _code(build, out, rows, steps, C, lanes)


def _running_sums(builder, like, count, at, put):
    """put(the sum of the vectors so far, p) for all of them in turn; at(k) -> the k-th vector and its p.

    Four go together: only one addition of the four waits for the last four.
    """
    total = cgutils.alloca_once_value(builder, like.zero)
    two = ir.Constant(count.type, 2)
    fours = builder.lshr(count, two)
    with cgutils.for_range(builder, fours) as loop:
        first = builder.shl(loop.index, two)
        (a, p), (b, q), (c, r), (d, s) = (at(builder.add(first, ir.Constant(count.type, k))) for k in range(4))
        before, two_of = builder.load(total), builder.fadd(a, b)
        put(builder.fadd(before, a), p)
        put(builder.fadd(before, two_of), q)
        put(builder.fadd(before, builder.fadd(two_of, c)), r)
        builder.store(builder.fadd(before, builder.fadd(two_of, builder.fadd(c, d))), total)
        put(builder.load(total), s)
    done = builder.shl(fours, two)
    with cgutils.for_range(builder, builder.sub(count, done)) as loop:
        one, p = at(builder.add(done, loop.index))
        builder.store(builder.fadd(builder.load(total), one), total)
        put(builder.load(total), p)


@vector
def count_below(typingctx, values, first, x):
    """One comparison of machine vectors."""

    def build(builder, values, first, x):
        node = builder.bitcast(values.at(first), ir.VectorType(values.number, NODE).as_pointer())
        below = builder.fcmp_ordered("<", builder.load(node, align=values.align), _splat(builder, x, NODE))
        return builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(NODE))), ir.IntType(64))

    return _code(build, values, types.uint64, values.dtype, returns=types.uint64)


@vector
def sum_steps(typingctx, dst, steps, C, lanes):
    def build(builder, dst, steps, C):
        def add(k, total):
            return builder.fadd(total, builder.fmul(dst.splat(steps.load(k)), C.load(k)))

        dst.store(_accumulated(builder, dst, steps.size, add), ir.Constant(steps.size.type, 0))

    return _code(build, dst, steps, C, lanes)


@vector
def add_squares_off(typingctx, out, steps, C, slope, lanes):
    def build(builder, out, steps, C, slope):
        even = slope.load(ir.Constant(steps.size.type, 0))

        def add(p, off):
            more = builder.fmul(C.splat(steps.load(p)), builder.fsub(C.load(p), even))
            e = builder.fadd(off, more)
            square = _sum(builder, builder.fmul(e, e), C.width)
            builder.store(builder.fadd(out.load(p), square), out.at(p))
            return e

        _accumulated(builder, C, steps.size, add)

    return _code(build, out, steps, C, slope, lanes)


@vector
def sum_minima(typingctx, dst, panel, base, dims, values, lanes):
    def build(builder, dst, panel, base, dims, values):
        def add(k, total):
            left = dst.splat(values.load(k))
            right = panel.load(builder.sub(dims.index(k, k), base))
            least = builder.select(builder.fcmp_ordered("<", left, right), left, right)  # one instruction on x86
            return builder.fadd(total, least)

        dst.store(_accumulated(builder, dst, dims.size, add), ir.Constant(base.type, 0))

    return _code(build, dst, panel, types.intp, dims, values, lanes)


def _accumulated(builder, like, count, add):
    """The vector that comes of zero by total = add(k, total) for every k below the count."""
    total = cgutils.alloca_once_value(builder, like.zero)
    builder.store(like.zero, total)
    with cgutils.for_range(builder, count) as loop:
        builder.store(add(loop.index, builder.load(total)), total)
    return builder.load(total)


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
