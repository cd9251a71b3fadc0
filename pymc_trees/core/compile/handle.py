"""Named tuples whose kernels are called by address: their callers are compiled once for all.

A generic kernel (`dispatch`) that declares a signature may be given a handle in the place of a
named tuple:

    @generic("leaf", args=(ROLE, ROW), result=float64)
    def log_marginal(leaf, stats): ...

    handles_of = Handles({"leaf": (log_marginal, add_sets)})
    [leaf] = handles_of({}, leaf=NormalData(...))           # in Python

A handle is the address of a block: the addresses of the kernels that are listed, and behind them
the fields of the tuple, as `pointer` lays them out. A caller that was compiled for a handle reads
an address there and passes on the fields; it is the same machine code for every leaf model. Kernels
in lists, and those they call, know the tuple's type as always. They are compiled one by one, when
the first handle of a type is made.

A handle keeps the arrays of its tuple alive, and is valid as long as the tuple's fields are: a new
tuple needs a new handle. Without compilation (NUMBA_DISABLE_JIT) `Handles` returns the tuples.
"""

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import TypingError, config, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox

from pymc_trees.core.compile.address import address_of, generate_call
from pymc_trees.core.compile.announce import ANNOUNCER, PARTS, in_words
from pymc_trees.core.compile.cache import njit, plain
from pymc_trees.core.compile.pointer import Pointer, n_bytes

_BYTES = ir.IntType(8).as_pointer()


class Role:
    """Stands in a signature for the argument, or another one, that may be a handle."""

    def __init__(self, name: str) -> None:
        self.name = name


class HandleType(types.Type):
    """numba's type of a handle.

    Parameters
    ----------
    role : str
        Name of the argument that generic kernels dispatch on.
    kernels : tuple of str
        Names of the kernels whose addresses the block begins with.
    places : tuple of pairs
        numba's type for each Python class that stands in a signature.
    """

    def __init__(self, role: str, kernels: tuple[str, ...], places: tuple) -> None:
        self.role, self.kernels, self.places = role, kernels, places
        digest = hashlib.sha256(f"{kernels} {[(p.__name__, k) for p, k in places]}".encode())
        super().__init__(f"{role} by address.{digest.hexdigest()[:12]}")

    @property
    def key(self):
        """What makes two types one."""
        return self.role, self.kernels, self.places

    def declared(self, declared: Any) -> types.Type | Role:
        """Numba's type for what stands in a signature."""
        if declared is None:
            return types.none
        if isinstance(declared, tuple):
            return types.Tuple([self.declared(one) for one in declared])
        if isinstance(declared, types.Type | Role):
            return declared
        return dict(self.places)[declared]

    def signature(self, generic, args: tuple[types.Type, ...]):
        """Signature of a call of a generic kernel with a handle for its main argument."""
        name = generic.__name__
        if name not in self.kernels:
            raise TypingError(f"{name} is not among the kernels that a {self} is made for.")
        expected = []
        for k, (given, one) in enumerate(zip(plain(args), generic.args, strict=True)):
            kind = self.declared(one)
            if isinstance(kind, Role):
                if not isinstance(given, HandleType) or given.role != kind.name:
                    raise TypingError(f"{name}: argument {k} is no {kind.name} by address.")
                kind = given
            elif given != kind and not _are_numbers(given, kind):
                raise TypingError(f"{name}: argument {k} is {given}, but is declared as {kind}.")
            expected.append(kind)
        return self.declared(generic.result)(*expected)


def _are_numbers(*kinds):
    return all(isinstance(kind, types.Number) for kind in kinds)


@register_model(HandleType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _BYTES)


_GENERATED: set = set()


def key_of_call(generic, place: int, signature):
    """Key under which numba finds the code of such a call."""
    key = (f"{generic.__module__}.{generic.__qualname__}", "by address")
    if (key, signature.args) not in _GENERATED:
        _GENERATED.add((key, signature.args))
        code = functools.partial(_constant if generic.constant else _call, generic.__name__, place)
        cpu_target.target_context.insert_func_defn([(code, key, signature.args)])
    return key


def _call(name, place, context, builder, signature, values):
    """Call the kernel whose address is in the block; the fields of handles are passed on."""
    kinds = [types.voidptr if isinstance(k, HandleType) else k for k in signature.args]
    result, handle = signature.return_type, signature.args[place]
    address = _word(builder, values[place], handle.kernels.index(name))
    given = [
        builder.gep(value, [ir.Constant(ir.IntType(64), 8 * len(kind.kernels))])
        if isinstance(kind, HandleType)
        else value
        for kind, value in zip(signature.args, values, strict=True)
    ]
    return generate_call(context, builder, address, result, kinds, given)


def _constant(name, place, context, builder, signature, values):
    """Number that the block has in place of an address."""
    word = _word(builder, values[place], signature.args[place].kernels.index(name))
    kind = context.get_value_type(signature.return_type)
    return builder.bitcast(word, kind) if kind == ir.DoubleType() else builder.trunc(word, kind)


def _word(builder, block, k):
    place = builder.gep(block, [ir.Constant(ir.IntType(64), 8 * k)])
    found = builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()))
    found.set_metadata("invariant.load", builder.module.add_metadata([]))
    return found


class Handle:
    """A named tuple, to be called by address."""

    __slots__ = ("address", "block", "kind", "value")

    def __init__(self, value: tuple, kind: HandleType, block: np.ndarray) -> None:
        self.value, self.kind, self.block = value, kind, block
        self.address = block.ctypes.data

    def __getattr__(self, name):
        return getattr(self.value, name)


@typeof_impl.register(Handle)
def _typeof(handle, context):
    return handle.kind


@unbox(HandleType)
def _unbox(kind, value, c):
    address = c.pyapi.object_getattr_string(value, "address")
    number = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.inttoptr(number, _BYTES))


@intrinsic
def _copy(typing_context, value, out):
    size = ir.Constant(ir.IntType(64), n_bytes(value))

    def generate(context, builder, signature, values):
        block, out = values
        array = context.make_array(signature.args[1])(context, builder, out)
        cgutils.raw_memcpy(builder, builder.bitcast(array.data, _BYTES), block, size, 1)
        return context.get_dummy_value()

    return types.none(value, out), generate


@njit(cache=True)
def copy_fields(value, out):
    """Copy the fields of a named tuple, which is passed by pointer, to an array of words."""
    _copy(value, out)


@njit(cache=True)
def _not_compiled():
    raise NotImplementedError("a kernel that was left out of a handle was called")


class Handles:
    """Makes handles for one forest, where the types of all that kernels are given never change.

    Parameters
    ----------
    kernels : dict
        Generic kernels by role.
    """

    def __init__(self, kernels: dict[str, tuple]) -> None:
        self._kernels = kernels
        self._known: dict[tuple, dict[str, tuple]] = {}

    def __call__(
        self, places: Callable[[], dict], left_out: frozenset[str], **values: tuple
    ) -> list:
        """Handles of named tuples, by role and in their order.

        Parameters
        ----------
        places : callable
            The numba types of the classes in signatures; called for the first values of a type.
        left_out : set of str
            Names of kernels that are not called, and not compiled.
        **values
            A tuple for each role.
        """
        if config.DISABLE_JIT:
            return list(values.values())
        kinds = left_out, *[type(value) for value in values.values()]
        if kinds not in self._known:
            self._known[kinds] = self._look_up(tuple(places().items()), values, left_out)
        found = []
        for role, (kind, table, n_words, copy) in self._known[kinds].items():
            block = np.empty(table.size + n_words, dtype=np.uint64)
            block[: table.size] = table
            copy(values[role], block[table.size :])
            found.append(Handle(values[role], kind, block))
        return found

    def _look_up(self, places, values, left_out):
        pointers = {role: numba.typeof(value) for role, value in values.items()}
        words = ", ".join(in_words(pointers[role]) for role in PARTS if role in pointers)
        with ANNOUNCER.together(f"kernels of a kind of model ({words})"):
            return self._compile(places, values, pointers, left_out)

    def _compile(self, places, values, pointers, left_out):
        found = {}
        for role, value in values.items():
            kind = HandleType(role, tuple(k.__name__ for k in self._kernels[role]), places)
            words = [
                address_of(_not_compiled, ())
                if one.__name__ in left_out or not one.is_answered_by(type(value))
                else _word_of(one, kind, pointers, value)
                for one in self._kernels[role]
            ]
            n_words = n_bytes(pointers[role]) // 8
            copy_fields(value, np.empty(n_words, dtype=np.uint64))
            copy = copy_fields.overloads[pointers[role], types.uint64[::1]].entry_point
            found[role] = kind, np.array(words, dtype=np.uint64), n_words, copy
        return found

    def __reduce__(self):
        """State without the parts that belong to a process."""
        return Handles, (self._kernels,)


def made_in_kernels(value: tuple) -> types.Type:
    """Numba's type of a named tuple that kernels make themselves, and so pass by value."""
    return types.NamedTuple([numba.typeof(field) for field in value], type(value))


def _word_of(generic, kind, pointers: dict[str, Pointer], value) -> int:
    """Address of the implementation of a generic kernel, or the bits of its result."""
    if generic.constant:
        number = np.float64 if generic.result == types.float64 else np.int64
        return int(np.array(generic(value), dtype=number).view(np.uint64))
    args = [kind.declared(one) for one in generic.args]
    args = [pointers[one.name] if isinstance(one, Role) else one for one in args]
    kernel = generic.kernel(pointers[kind.role].instance_class)
    return address_of(kernel, tuple(args), kind.declared(generic.result))


# What stands in signatures.
CODES = types.uint8[:, ::1]
COUNTS = types.int64[::1]
GENERATOR = types.npy_rng
LIST = types.uint32[::1]
NODES = types.int32[::1]
ROW = types.float64[::1]
TABLE = types.float64[:, ::1]
WORDS = types.uint64[::1]
