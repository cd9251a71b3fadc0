"""How is PyMC made to handle models with trees? Wrappers around its functions, each applied once.

`wrap` (how a function is wrapped), `register` (the step methods, and NUTS for the noise),
`convergence` (PyMC's warnings, judged on function values; trees that stand still; names of
statistics), `runs` (deferred interrupts, threads, chains elsewhere), `states` (stored, so chains
can be resumed; draws of runs that fail), `refusals` (functions and backends that do not support
trees, initial values, missing draws), `data` (other rows, new inputs, tables in files). Importing
this package applies all wrappers.

May import: everything but `plots` and `estimators`.
"""

from pymc_trees.hooks import convergence, data, refusals, register, runs, states

for put_on in (
    register.register_steps,
    convergence.judge_function_values,
    convergence.watch_trees,
    states.keep_draws,
    runs.give_chains_out,
    runs.share_cores,
    runs.defer_in_draws,
    runs.defer_around_draws,
    refusals.reject_unsupported,
    refusals.refuse_backends,
    refusals.check_initial_values,
    data.explain_shapes,
    refusals.refuse_missing_draws,
    data.encode_new_data,
    data.leave_files_out,
    convergence.name_columns,
    states.keep_states,
    states.keep_states_of_processes,
    states.pass_functions_on,
    register.give_noise_to_nuts,
    runs.pickle_with_hooks,
):
    put_on()
