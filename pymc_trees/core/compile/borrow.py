"""Arrays and random generators that a kernel uses without owning: no counting of references.

Compiled code counts references to every array of a tuple of arrays, one locked addition up and one
down, whenever the tuple is passed on. On 1,000 rows that took more than half of a sweep. What is
borrowed has no count; whoever called the kernel owns it and keeps it alive. So a kernel that Python
calls borrows at its top, and never returns what it borrowed.
"""

from numba import config, types
from numba.core import cgutils
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic


def _borrow(context, builder, kind, value):
    if isinstance(kind, types.Array | types.NumPyRandomGeneratorType):
        owned = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        owned.meminfo = cgutils.get_null_value(owned.meminfo.type)
        return owned._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        parts = [_borrow(context, builder, k, v) for k, v in zip(kind, parts, strict=True)]
        return context.make_tuple(builder, kind, parts)
    return value


@intrinsic
def borrowed(typing_context, owned):
    """What is given, without reference counts: an array, a generator, or tuples of such.

    Called from compiled code only.
    """

    def generate(context, builder, signature, arguments):
        value = _borrow(context, builder, signature.args[0], arguments[0])
        return impl_ret_untracked(context, builder, signature.return_type, value)

    return owned(owned), generate


if config.DISABLE_JIT:  # kernels run as Python: nothing is counted that way

    def borrowed(owned):  # noqa: F811
        """What is given."""
        return owned
