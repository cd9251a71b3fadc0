"""How is PyMC made to handle models with trees? Wrappers around its functions, each applied once.

`wrap` (how a function is wrapped), `register` (the step methods), `convergence` (PyMC's warnings,
judged on function values), `still_trees` (a warning where trees do not move), `keep_draws` (draws
of a run that ends with an error), `interrupts` and `forward_sampling` (deferred interrupts in
PyMC's compiled code), `refusals` (functions of PyMC that do not support trees), `backends` (of
PyTensor, that do not), `initial_values` (of trees, checked), `new_rows` (checks before prediction
at other rows), `missing_draws` (an error where PyMC would draw a forest from its prior), `set_data`
(new inputs, encoded), `constants` (tables in files, left out of results), `statistics` (names of
their columns), `nuts_options` (for noise that NUTS samples), `pickling` (hooks in other processes),
`chains` (run elsewhere), `threads` (on idle cores), `states` and `process_states` (stored, so
chains can be resumed), `known_functions` (what a chain's process knows, for the process that
records it). Importing this package applies all wrappers.

May import: everything but `plots` and `estimators`.
"""

from pymc_trees.hooks.backends import refuse_backends
from pymc_trees.hooks.chains import give_chains_out
from pymc_trees.hooks.constants import leave_files_out
from pymc_trees.hooks.convergence import judge_function_values
from pymc_trees.hooks.forward_sampling import defer_in_draws
from pymc_trees.hooks.initial_values import check_initial_values
from pymc_trees.hooks.interrupts import defer_around_draws
from pymc_trees.hooks.keep_draws import keep_draws
from pymc_trees.hooks.known_functions import pass_functions_on
from pymc_trees.hooks.missing_draws import refuse_missing_draws
from pymc_trees.hooks.new_rows import explain_shapes
from pymc_trees.hooks.nuts_options import give_noise_to_nuts
from pymc_trees.hooks.pickling import pickle_with_hooks
from pymc_trees.hooks.process_states import keep_states_of_processes
from pymc_trees.hooks.refusals import refuse_outsiders
from pymc_trees.hooks.register import register_steps
from pymc_trees.hooks.set_data import encode_new_data
from pymc_trees.hooks.states import keep_states
from pymc_trees.hooks.statistics import name_columns
from pymc_trees.hooks.still_trees import watch_trees
from pymc_trees.hooks.threads import share_cores

for put_on in (
    register_steps,
    judge_function_values,
    watch_trees,
    keep_draws,
    give_chains_out,
    share_cores,
    defer_in_draws,
    defer_around_draws,
    refuse_outsiders,
    refuse_backends,
    check_initial_values,
    explain_shapes,
    refuse_missing_draws,
    encode_new_data,
    leave_files_out,
    name_columns,
    keep_states,
    keep_states_of_processes,
    pass_functions_on,
    give_noise_to_nuts,
    pickle_with_hooks,
):
    put_on()
