"""Functions of PyMC that are wrapped still have the parameters that wrappers were written for."""

import inspect

import pymc as pm
import pymc.sampling.mcmc
import pytest

import pymc_trees.hooks
from pymc_trees.hooks.wrap import WRAPPED, arguments, wrap

PARAMETERS = {  # of the newest PyMC that this was looked at with, 6.4
    "pymc.backends.arviz.find_constants": "model",
    "pymc.backends.ndarray.NDArray.record": "self point sampler_stats in_warmup",
    "pymc.initial_point.make_initial_point_fn": (
        "model overrides jitter_rvs default_strategy return_transformed"
    ),
    "pymc.model.core.BaseModel.set_data": "self name values coords",
    "pymc.model.core.Model.set_initval": "self rv_var initval",
    "pymc.model.transform.conditioning.do": (
        "model vars_to_interventions make_interventions_shared prune_vars"
    ),
    "pymc.printing.str_for_dist": "dist formatting include_params named_vars",
    "pymc.pytensorf.compile": "inputs outputs random_seed mode return_updates kwargs",
    "pymc.sampling.deterministic.compute_deterministics": (
        "dataset group var_names model sample_dims merge_dataset extend_dataset progressbar "
        "backend compile_kwargs"
    ),
    "pymc.sampling.forward.compile_forward_sampling_function": (
        "outputs vars_in_trace basic_rvs constant_data volatile_vars freeze_vars model kwargs"
    ),
    "pymc.sampling.forward.sample_posterior_predictive": (
        "trace model var_names sample_vars freeze_vars sample_dims random_seed "
        "progressbar progressbar_theme return_inferencedata extend_inferencedata "
        "predictions idata_kwargs backend compile_kwargs"
    ),
    "pymc.sampling.forward.sample_prior_predictive": (
        "draws model var_names random_seed return_inferencedata idata_kwargs backend compile_kwargs"
    ),
    "pymc.sampling.mcmc._iter_sample": "draws step start trace chain tune rng model callback",
    "pymc.sampling.mcmc._mp_sample": (
        "draws tune step chains cores rngs start progressbar progressbar_theme traces "
        "model callback blas_cores mp_ctx kwargs"
    ),
    "pymc.sampling.mcmc._sample_many": "draws chains traces start rngs step callback kwargs",
    "pymc.sampling.mcmc._sample_return": (
        "run traces tune t_sampling discard_tuned_samples compute_convergence_checks "
        "return_inferencedata keep_warning_stat idata_kwargs model quiet"
    ),
    "pymc.sampling.mcmc.instantiate_steppers": (
        "model steps selected_steps step_kwargs initial_point compile_kwargs"
    ),
    "pymc.sampling.mcmc.sample": (
        "draws tune chains cores random_seed progressbar progressbar_theme quiet step "
        "var_names nuts_sampler initvals init jitter_max_retries n_init trace "
        "discard_tuned_samples compute_convergence_checks keep_warning_stat "
        "return_inferencedata idata_kwargs nuts_sampler_kwargs callback mp_ctx blas_cores "
        "model backend compile_kwargs kwargs"
    ),
    "pymc.sampling.parallel.ParallelSampler.__exit__": "self args",
    "pymc.sampling.parallel.ProcessAdapter.__init__": (
        "self draws tune step_method step_method_pickled chain rng start blas_cores mp_ctx "
        "zarr_chains zarr_chains_pickled"
    ),
    "pymc.sampling.parallel.ProcessAdapter._send": "self msg args",
    "pymc.sampling.parallel.ProcessAdapter.recv_draw": "processes timeout",
    "pymc.sampling.parallel._Process._start_loop": "self",
    "pymc.smc.sampling.sample_smc": (
        "draws kernel start model random_seed chains cores blas_cores "
        "compute_convergence_checks return_inferencedata idata_kwargs progressbar "
        "progressbar_theme backend compile_kwargs mp_ctx kernel_kwargs"
    ),
    "pymc.stats.convergence.run_convergence_checks": "idata model",
    "pymc.stats.log_density.compute_log_likelihood": (
        "idata var_names extend_inferencedata model sample_dims progressbar backend compile_kwargs"
    ),
    "pymc.stats.log_density.compute_log_prior": (
        "idata var_names extend_inferencedata model sample_dims progressbar backend compile_kwargs"
    ),
    "pymc.step_methods.compound.BlockedStep.__new__": "cls args kwargs",
    "pymc.step_methods.compound.CompoundStep.step": "self point",
    "pymc.tuning.starting.find_MAP": (
        "method vars use_grad use_hess use_hessp initvals jitter jitter_max_retries "
        "random_seed progressbar compute_hessian return_inferencedata idata_kwargs model "
        "backend compile_kwargs optimizer_kwargs"
    ),
    **dict.fromkeys(
        [
            "pytensor.link.jax.linker.JAXLinker.fgraph_convert",
            "pytensor.link.mlx.linker.MLXLinker.fgraph_convert",
            "pytensor.link.pytorch.linker.PytorchLinker.fgraph_convert",
        ],
        "self fgraph input_storage storage_map kwargs",
    ),
}


OLDER = {  # of PyMC 6.3 and PyTensor 3.2, where they differ
    "pymc.tuning.starting.find_MAP": (
        "start vars method return_raw include_transformed progressbar progressbar_theme maxeval "
        "model args seed kwargs"
    ),
    "pytensor.link.mlx.linker.MLXLinker.fgraph_convert": "self fgraph kwargs",
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_that_the_wrapper_expects(name):
    parameters = " ".join(inspect.signature(WRAPPED[name]).parameters)
    expected = (PARAMETERS[name], OLDER.get(name))
    assert parameters in expected, "does its wrapper in hooks still do its work?"


def test_every_wrapped_function_is_listed():
    assert pymc_trees.hooks and sorted(WRAPPED) == sorted(PARAMETERS)


def test_wrapping_twice_is_wrapping_once():
    def double(original, x):
        return 2 * original(x)

    class Place:
        @staticmethod
        def function(x):
            return x + 1

    wrap([Place], "function", double)
    once = Place.function
    wrap([Place], "function", double)
    assert Place.function is once and Place().function(3) == 8
    assert once.__name__ == "function" and once.__wrapped__(3) == 4
    del WRAPPED[next(name for name in WRAPPED if name.endswith("Place.function"))]


def test_a_function_that_a_version_lacks_is_left_alone():
    wrap([pymc.sampling.mcmc], "no_such_function", print)
    assert not hasattr(pymc.sampling.mcmc, "no_such_function")


def test_users_find_the_same_function_everywhere():
    assert pm.sample is pymc.sampling.sample is pymc.sampling.mcmc.sample
    assert arguments(pm.sample, (5,), {"tune": 3}) == {"draws": 5, "tune": 3}
