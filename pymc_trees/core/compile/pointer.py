"""Named tuples that kernels take by pointer.

A forest is a few hundred machine words of arrays, and a call from kernel to kernel passes all of
them if they are in tuples. A type decorated with `by_pointer` is passed as one word instead:

    @by_pointer
    class Trees(NamedTuple):
        column: np.ndarray
        ...

Call from Python as before, with the tuple itself. The code that numba writes around a kernel copies
the fields to a block on its stack, and hands over the block's address; a field that is such a tuple
too is a block within the block. In kernels a pointer has the attributes of the tuple, and
`dispatch` picks by its type; it has no length, items, or methods. A tuple that a kernel makes is
passed by value as usual, so a kernel may be compiled for both.

A pointer is valid for as long as the call from Python lasts, since the caller holds the fields and
tuples are never changed; that to a `handle` is as long as the handle. References to arrays and
generators are therefore not counted when they are read: numba's counters are not in the block, as
they last until the end of the call in which it was filled. Fields may be read once for several
uses. Without compilation (NUMBA_DISABLE_JIT) the tuple is passed.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    box,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

# -------- Calls of kernels whose argument types never change: numba need not resolve them each time
#
# numba determines the type of a named tuple in Python, array by array; for the tuples of a forest
# this takes longer than a sweep over a few hundred rows.


class DirectCalls:
    """Compiled code of each kernel for the types of its first call.

    One instance belongs to one forest of a step method, where the argument types of a kernel never
    change.
    """

    def __init__(self):
        self._entries: dict[Any, Callable] = {}

    def __call__(self, kernel, *arguments):
        """Result of a kernel."""
        entry = self._entries.get(kernel)
        if entry is not None:
            return entry(*arguments)
        result = kernel(*arguments)
        compiled = getattr(kernel, "overloads", None)
        if compiled:  # without compilation (NUMBA_DISABLE_JIT) there are none
            types = tuple(kernel.typeof_pyval(a) for a in arguments)
            if types in compiled:
                self._entries[kernel] = compiled[types].entry_point
        return result

    def compile(self, kernel, *arguments):
        """Compile a kernel for the types of some arguments."""
        if not config.DISABLE_JIT:
            kernel.compile(tuple(kernel.typeof_pyval(a) for a in arguments))

    def __reduce__(self):
        """State without the parts that belong to a process."""
        return (DirectCalls, ())


# -------------------------------------------------------------------------------------------------


_BYTES = ir.IntType(8).as_pointer()


def by_pointer[T: type](kind: T) -> T:
    """Decorate a NamedTuple type: kernels take its values by pointer."""

    @typeof_impl.register(kind)
    def _typeof(value, context):
        fields = [typeof_impl(field, context) for field in value]
        return None if None in fields else Pointer(kind, fields)

    return kind


class Pointer(types.Type):
    """Address of a block with the fields of a NamedTuple."""

    def __init__(self, instance_class: type, fields: list[types.Type]) -> None:
        self.instance_class, self.types = instance_class, tuple(fields)
        self.fields = instance_class._fields
        # A short name, since it is part of that of each compiled function.
        text = f"{instance_class.__module__}.{instance_class.__qualname__} {fields}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        super().__init__(f"*{instance_class.__name__}.{digest[:12]}")

    @property
    def key(self):
        """What makes two types one."""
        return self.instance_class, self.types

    def kind_of(self, name: str) -> types.Type | None:
        """Type of an attribute, if there is one of that name."""
        return self.types[self.fields.index(name)] if name in self.fields else None


@register_model(Pointer)
class _Model(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _BYTES)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Pointer

    def generic_resolve(self, kind, name):
        return kind.kind_of(name)


@lower_getattr_generic(Pointer)
def _read(context, builder, kind, block, name):
    found, place = kind.kind_of(name), _place(context, builder, kind, block, name)
    if isinstance(found, Pointer):
        return place
    value = builder.load(builder.bitcast(place, context.get_value_type(found).as_pointer()))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    # There is nothing to count (`_copy`). LLVM, too, is told so: numba drops counts of nothing,
    # also in kernels that are passed the array by others.
    return _uncounted(context, builder, found, value)


def _uncounted(context, builder, kind, value):
    """A value without numba's counters of references (``meminfo``)."""
    if isinstance(kind, types.MemInfoPointer):
        return ir.Constant(value.type, None)
    model = context.data_model_manager[kind]
    if not model.contains_nrt_meminfo():
        return value
    if isinstance(kind, types.BaseTuple):
        parts = list(kind.types)
    elif isinstance(kind, types.Array | types.NumPyRandomGeneratorType):
        parts = [model.get_type(k) for k in range(model.field_count)]
    else:  # what a kernel reads of it may be behind its counter
        raise TypeError(f"A field of type {kind} cannot be passed by pointer.")
    for k, part in enumerate(parts):
        found = _uncounted(context, builder, part, builder.extract_value(value, k))
        value = builder.insert_value(value, found, k)
    return value


def _place(context, builder, kind, block, name):
    """Address of a field in a block."""
    return builder.gep(block, [ir.Constant(ir.IntType(64), _offsets(context, kind)[name])])


def _offsets(context, kind):
    """Offset of each field in bytes, and the size of the block under the name ''."""
    if kind not in _OFFSETS:
        offsets, end = {}, 8  # after the Python object itself
        for name, found in zip(kind.fields, kind.types, strict=True):
            offsets[name] = end
            end += -(-_size(context, found) // 8) * 8
        _OFFSETS[kind] = offsets | {"": end}
    return _OFFSETS[kind]


def _size(context, kind):
    if isinstance(kind, Pointer):
        return _offsets(context, kind)[""]
    return context.get_value_type(kind).get_abi_size(context.target_data)


_OFFSETS: dict[Pointer, dict[str, int]] = {}


def n_bytes(kind: Pointer) -> int:
    """Size of a block."""
    return _offsets(cpu_target.target_context, kind)[""]


@box(Pointer)
def _box(kind, block, c):
    value = c.builder.load(c.builder.bitcast(block, c.pyapi.pyobj.as_pointer()))
    c.pyapi.incref(value)
    return value


@unbox(Pointer)
def _unbox(kind, value, c):
    words = ir.ArrayType(ir.IntType(64), _size(c.context, kind) // 8)
    block = c.builder.bitcast(cgutils.alloca_once(c.builder, words), _BYTES)
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    cleanups: list = []
    _fill(kind, value, block, failed, cleanups, c)

    def cleanup():
        for one in reversed(cleanups):
            one()

    return NativeValue(block, c.builder.load(failed), cleanup if cleanups else None)


def _fill(kind, value, block, failed, cleanups, c):
    """Write a named tuple to a block."""
    c.builder.store(value, c.builder.bitcast(block, value.type.as_pointer()))
    for k, (name, found) in enumerate(zip(kind.fields, kind.types, strict=True)):
        field = c.pyapi.tuple_getitem(value, k)
        place = _place(c.context, c.builder, kind, block, name)
        if isinstance(found, Pointer):
            _fill(found, field, place, failed, cleanups, c)
            continue
        place = c.builder.bitcast(place, c.context.get_value_type(found).as_pointer())
        error = _copy(found, field, place, cleanups, c)
        with c.builder.if_then(error, likely=False):
            c.builder.store(cgutils.true_bit, failed)


def _copy(kind, value, place, cleanups, c):
    """Copy a field, but for counters of references, to its place; whether that failed."""
    if isinstance(kind, types.Array):
        adapt_type = ir.FunctionType(ir.IntType(32), [c.pyapi.pyobj, _BYTES])
        adapt = cgutils.get_or_insert_function(c.builder.module, adapt_type, "numba_adapt_ndarray")
        c.builder.store(ir.Constant(place.type.pointee, None), place)
        error = c.builder.call(adapt, [value, c.builder.bitcast(place, _BYTES)])
        failed = cgutils.is_not_null(c.builder, error)
        with c.builder.if_then(failed, likely=False):
            c.pyapi.err_set_string("PyExc_TypeError", "a field of a named tuple is no array")
        return failed
    native = c.unbox(kind, value)
    c.builder.store(_uncounted(c.context, c.builder, kind, native.value), place)
    if native.cleanup is not None:
        cleanups.append(native.cleanup)
    if c.context.data_model_manager[kind].contains_nrt_meminfo():
        cleanups.append(lambda: c.context.nrt.decref(c.builder, kind, native.value))
    return native.is_error
