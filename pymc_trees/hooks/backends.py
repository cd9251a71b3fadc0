"""PyTensor's backends that cannot run the compiled code of trees: JAX, PyTorch and MLX.

An Op without a translation ends in an error of PyTensor about that Op, or about a library that is
not installed. All functions are compiled by the linkers of these backends, whoever asks for them;
`pymc.sample` is refused before it makes its steps.
"""

import pymc as pm
from pymc.pytensorf import resolve_backend_compile_kwargs
from pytensor.compile.mode import get_mode
from pytensor.graph.fg import FunctionGraph
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.mlx.linker import MLXLinker
from pytensor.link.pytorch.linker import PytorchLinker

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.wrap import SAMPLE, wrap

BACKENDS = {JAXLinker: "jax", MLXLinker: "mlx", PytorchLinker: "pytorch"}
"""What `pymc.sample` and others call them."""


def refuse_backends() -> None:
    """Wrap `pymc.sample`, and the translation of a graph in each of them."""
    wrap(SAMPLE, "sample", _sample)
    for linker in BACKENDS:
        wrap([linker], "fgraph_convert", _convert)


def _sample(original, *args, **kwargs):
    trees = tree_variables(pm.modelcontext(kwargs.get("model")))
    if trees:
        given = resolve_backend_compile_kwargs(kwargs.get("backend"), kwargs.get("compile_kwargs"))
        linker = get_mode(given.get("mode")).linker
        if isinstance(linker, tuple(BACKENDS)):
            raise _refusal(linker, trees[0].name)
    return original(*args, **kwargs)


def _convert(original, linker, fgraph: FunctionGraph, *args, **kwargs):
    ours = (n for n in fgraph.apply_nodes if type(n.op).__module__.startswith("pymc_trees."))
    node = next(ours, None)
    if node is not None:
        names = [v.name for v in (*node.inputs, *node.outputs) if v.name]
        raise _refusal(linker, next(iter(names), "a forest"))
    return original(linker, fgraph, *args, **kwargs)


def _refusal(linker, name: str) -> NotImplementedError:
    backend = next(BACKENDS[kind] for kind in BACKENDS if isinstance(linker, kind))
    return NotImplementedError(
        f"The backend {backend!r} cannot compile what sees trees, here {name}, since their code is "
        "compiled by numba: leave backend= (or mode=) out, or give backend='numba'."
    )
