"""How is PyMC made to handle models with trees? Wrappers around its functions, each applied once.

`wrap` (how a function is wrapped), `register` (the step methods, and NUTS for the noise),
`convergence` (PyMC's warnings, computed from function values; trees that hardly move; names of
statistics), `sums` (forests beside other terms, judged together), `groups` (new groups, indices in
range), `runs` (deferred interrupts, threads, chains that run elsewhere, how long they need be,
where they start), `states` (stored, so that chains can be resumed; draws of runs that fail),
`refusals` (functions and backends that do not support trees, initial values, missing draws), `data`
(new rows, new inputs, tables in files), `display` (a forest in the printed model). Importing this
package installs all wrappers.

May import: everything but `plots` and `estimators`.
"""

from pymc_trees import dcc
from pymc_trees.hooks import (
    convergence,
    data,
    display,
    groups,
    refusals,
    register,
    runs,
    states,
)
from pymc_trees.unread_tables import explain_data

for install in (
    dcc.register,
    register.register_steps,
    convergence.check_function_values,
    convergence.watch_trees,
    runs.say_lengths,
    states.keep_draws,
    runs.report_in_pipes,
    runs.delegate_chains,
    runs.allocate_threads,
    runs.defer_in_draws,
    runs.defer_around_draws,
    refusals.reject_unsupported,
    refusals.refuse_backends,
    refusals.check_initial_values,
    runs.start_within_limits,
    data.explain_shapes,
    data.warn_of_fixed_shapes,
    explain_data,
    display.show_forests,
    refusals.refuse_missing_draws,
    groups.check_groups,
    data.encode_new_data,
    data.exclude_tables_in_files,
    convergence.name_columns,
    states.keep_states,
    states.keep_states_of_processes,
    states.share_functions,
    register.review_assignment,
    runs.pickle_with_hooks,
):
    install()
