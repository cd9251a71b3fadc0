"""`RJHMC` under `pm.sample`: assignment, refusals, variables beside, interrupts, saved states."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.state import equal_dataclass_values
from support.chains.jumps import weak_model, weak_step

import pymc_trees as pmt
from pymc_trees.dcc.jump_model import JumpModel
from pymc_trees.dcc.kernels.encode import encode, label_of
from pymc_trees.dcc.soft_tree_rv import fingerprint_of
from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.inference.chains.states import from_dataset, to_dataset

OPTIONS = {"warm_up": 30, "bridge": 2, "grow": 0.4, "prune": 0.4}


@pytest.fixture(scope="module")
def model():
    return weak_model(*weak_step(p=2))


@pytest.fixture(scope="module")
def by_index():
    return weak_model(*weak_step(p=2), direction="index")


@pytest.fixture(scope="module")
def step(model):
    """One for all tests: its functions are compiled once, and every chain starts afresh."""
    return pmt.RJHMC(model=model, **OPTIONS)


def begin(step, tune=3):
    step.setup_chain(np.random.default_rng(4), tune, 5)


def go(step, point, times):
    points, stats = [], []
    for _ in range(times):
        point, [one] = step.step(point)
        points.append({name: np.copy(value) for name, value in point.items()})
        stats.append(one)
    return points, stats


def selected(model, step=()):
    with model:
        _, found = pm.sampling.mcmc.assign_step_methods(model, list(step))
    return {kind: [v.name for v in variables] for kind, variables in found.items()}


def test_assignment(model, by_index):
    names = ["mu_forest", "sigma_log__"]
    assert selected(model) == {pmt.DCCTree: names}
    assert selected(by_index) == {pmt.RJHMC: names}
    assert selected(model, [pmt.RJHMC(model=model)]) == {}


def test_discrete_variables_beside_get_a_step_of_their_own():
    X, y = weak_step()
    with pm.Model() as model:
        shift = pm.Bernoulli("shift", 0.3)
        mu = pmt.SoftDecisionTree("mu", X, y, 0.7, 2.0)
        pm.Normal("y", mu + shift, 0.6, observed=y, shape=mu.shape)
        step = pmt.RJHMC()
    assert [v.name for v in step.vars] == ["mu_forest"]
    assert selected(model, [step]) == {pm.BinaryGibbsMetropolis: ["shift"]} or selected(
        model, [step]
    ) == {pm.BinaryMetropolis: ["shift"]}


def test_the_function_stands_for_the_tree_and_what_moves_with_it():
    """A discrete variable that the prior of the leaves depends on has another step."""
    X, y = weak_step()
    with pm.Model() as model:
        shift, scale = pm.Bernoulli("shift", 0.3), pm.HalfNormal("scale")
        leaf = pmt.NormalLeaf(1.0 * shift, scale)
        mu = pmt.SoftDecisionTree("mu", X, y, 0.7, 2.0, leaf=leaf, direction="index")
        sigma = pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        step = pmt.RJHMC([mu])
        assert {v.name for v in step.vars} == {"mu_forest", "scale_log__"}
        with pytest.raises(ValueError, match=r"let it move \['sigma'\] too.*pm.NUTS"):
            pm.sample(1, tune=1, chains=1, step=[step], progressbar=False)
    left = selected(model, [step, pm.NUTS([sigma], model=model)])
    assert list(left.values()) == [["shift"]]


def test_two_soft_trees_are_refused():
    X, y = weak_step()
    with pm.Model():
        a, b = (pmt.SoftDecisionTree(name, X, y, 0.7, 2.0) for name in "ab")
        pm.Normal("y", a + b, 0.6, observed=y, shape=a.shape)
        for make in (pmt.RJHMC, pmt.DCCTree):
            with pytest.raises(ValueError, match=r"\['a_forest', 'b_forest'\].*SoftBART"):
                make()
        with pytest.raises(ValueError, match="is a SoftDecisionTree: leave it to pm.sample"):
            pmt.CGM()


def test_variant_is_that_of_the_tree(model, by_index):
    assert pmt.RJHMC(variant="DFI", model=model) and pmt.RJHMC(variant="DF", model=by_index)
    with pytest.raises(ValueError, match="direction='index'"):
        pmt.RJHMC(variant="DF", model=model)
    with pytest.raises(ValueError, match="direction='dirichlet'"):
        pmt.RJHMC(variant="DFI", model=by_index)
    one = weak_model(*weak_step())
    assert pmt.RJHMC(variant="DF", model=one) and pmt.RJHMC(variant="DFI", model=one)


def test_dcc_tree_leaves_trees_by_index_to_it(by_index):
    with pytest.raises(NotImplementedError, match="pymc_trees.RJHMC"):
        pmt.DCCTree(model=by_index)


def test_draws_are_trees_with_the_statistics_of_their_steps(model, step):
    begin(step)
    points, stats = go(step, model.initial_point(), 40)
    before = "L"
    for point, one in zip(points, stats, strict=True):
        label = label_of(point["mu_forest"])
        assert one["n_leaves"] == label.count("L")
        moved = (len(label) - len(before)) // 2
        assert moved == one["jump"] * one["jump_accepted"]
        assert np.isnan(one["jump_log_ratio"]) == (one["jump"] == 0)
        before = label
    total = model.compile_logp(vars=[model["y"]])
    for point, one in zip(points[-3:], stats[-3:], strict=True):
        assert one["log_likelihood"] == pytest.approx(total(point), rel=1e-8)
    assert {one["jump"] for one in stats} == {-1, 0, 1}


def test_tuned_numbers_are_fixed_after_tuning(model, step):
    begin(step)
    points, _ = go(step, model.initial_point(), 10)

    def scales():
        known = step.kernels.adapted
        return {
            label: (chain.state.step_adapt._log_bar, chain.variances)
            for label, chain in known.items()
        }

    tuning = scales()
    points, _ = go(step, points[-1], 10)
    adapted = scales()
    assert any(tuning[label][0] != adapted[label][0] for label in tuning)
    step.stop_tuning()
    reference = step.kernels.reference
    go(step, points[-1], 20)
    after = scales()
    for label, (size, variances) in adapted.items():
        assert after[label][0] == size
        np.testing.assert_array_equal(after[label][1], variances)
    assert step.kernels.reference is reference


def test_a_state_is_read_from_a_point(by_index, model):
    rng = np.random.default_rng(2)
    for one in (model, by_index):
        posterior = JumpModel(pmt.RJHMC(model=one).soft)
        tree = one["mu_forest"]
        delta = np.eye(2)[[1, 0]] if one is by_index else rng.dirichlet([1, 1], 2)
        value = encode(
            "SSLLL", delta, rng.random(2), rng.normal(size=(3, 1)), 63, fingerprint_of(tree)
        )
        point = {"mu_forest": value, "sigma_log__": np.array(0.3)}
        state = posterior.state_at(point)
        posterior.set_state(state.label, state.inputs)
        again = posterior.point(state.q, rng)
        np.testing.assert_allclose(again["mu_forest"][:, :-1], value[:, :-1], atol=1e-12)
        assert again["sigma_log__"] == 0.3


def test_another_steps_changes_are_taken_over(model, step):
    begin(step)
    point, _ = step.step(model.initial_point())
    point["sigma_log__"] = np.array(3.0)
    state, jumps = step.state, []
    step.kernels.run = lambda rng, state, n, tune: (jumps.append(state), (state, 0, 0))[1]
    step.step(point)
    assert jumps[0].q[0] == 3.0
    np.testing.assert_array_equal(jumps[0].q[1:], state.q[1:])


def test_a_saved_state_goes_on_where_it_was(model, step):
    """While tuning, and among the draws."""
    for draws in (False, True):
        begin(step)
        first, _ = go(step, model.initial_point(), 6)
        if draws:
            step.stop_tuning()
            first, _ = go(step, first[-1], 2)
        state = cloudpickle.loads(cloudpickle.dumps(step.sampling_state))
        assert equal_dataclass_values(state, step.sampling_state)
        stored = from_dataset(to_dataset({"state": state}))["state"]  # as in a file
        assert equal_dataclass_values(stored, state)
        other = pmt.RJHMC(model=model, **OPTIONS)
        other.functions = step.functions  # spares a compilation
        other.sampling_state = stored
        expected, _ = go(step, first[-1], 5)
        again, _ = go(other, first[-1], 5)
        for a, b in zip(again, expected, strict=True):
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.full
def test_sample_and_resume_with_another_step_beside(model):
    def run(function, *given, **options):
        with model:  # PyMC's slice sampler remembers its width over runs
            steps = [pmt.RJHMC([model["mu"]], **OPTIONS), pm.Slice([model["sigma"]])]
            return function(*given, step=steps, cores=1, progressbar=False, **options)

    start = {"tune": 10, "chains": 1, "random_seed": 1, "quiet": True}
    idata, longer = (run(pm.sample, draws, **start) for draws in (20, 30))
    pmt.check_draws(idata, model)
    more = run(pmt.resume, idata, draws=10)
    assert len(np.unique(longer.posterior["sigma"])) == 30
    for name in ("mu_forest", "sigma"):
        np.testing.assert_array_equal(more.posterior[name], longer.posterior[name])


@pytest.mark.full
def test_an_interrupt_keeps_the_draws_so_far(by_index):
    def stop(trace, draw):
        if draw.draw_idx == 5 + 20:
            raise KeyboardInterrupt

    with by_index:
        idata = pm.sample(
            60,
            tune=5,
            chains=1,
            callback=stop,
            random_seed=1,
            progressbar=False,
            quiet=True,
            rjhmc=OPTIONS,
        )
    assert 19 <= idata.posterior.sizes["draw"] <= 21
    pmt.check_draws(idata, by_index)


def test_a_topology_that_outgrows_its_room_is_told(step):
    X, y = weak_step()
    small = weak_model(X, y, max_nodes=1)
    tight = pmt.RJHMC(model=small, grow=0.9, prune=0.1, warm_up=20)
    with pytest.raises(ForestTooLargeError, match="mu_forest outgrew max_nodes=1.*max_nodes=3"):
        go(tight, small.initial_point(), 20)


def test_a_refused_topology_may_be_larger_than_the_room():
    """Rows that are all 0 have no use for a split: five growths are refused, none accepted."""
    X = np.linspace(0, 1, 5)[:, None]
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree("mu", X, alpha=0.01, max_nodes=1, leaf=pmt.NormalLeaf(0, 1))
        pm.Normal("y", mu, 1.0, observed=np.zeros(5), shape=mu.shape)
    tight = pmt.RJHMC(model=model, grow=0.9, prune=0.1, warm_up=20, bridge=0)
    begin(tight)
    _, stats = go(tight, model.initial_point(), 5)
    assert [one["jump"] for one in stats] == [1] * 5
    assert {one["jump_accepted"] for one in stats} == {False}


def test_variables_are_chosen_by_name_value_or_function(model):
    tree, sigma = model["mu_forest"], model["sigma"]
    for given, names in (
        ([tree], ["mu_forest"]),
        (["mu_forest", "sigma"], ["mu_forest", "sigma_log__"]),
        ([model["mu"], sigma], ["mu_forest", "sigma_log__"]),
        (model.rvs_to_values[tree], ["mu_forest"]),
    ):
        assert [v.name for v in pmt.RJHMC(given, model=model).vars] == names


def test_wrong_variables_and_settings_are_named(model):
    with pytest.raises(ValueError, match="add mu_forest"):
        pmt.RJHMC([model["sigma"]], model=model)
    with pytest.raises(ValueError, match="neither a free variable"):
        pmt.RJHMC([model["mu"], model["y"]], model=model)
    with pytest.raises(ValueError, match="grow=0.7, prune=0.7"):
        pmt.RJHMC(model=model, grow=0.7, prune=0.7)
    with pytest.raises(ValueError, match="warm_up=5"):
        pmt.RJHMC(model=model, warm_up=5)
    with pm.Model() as other:
        pmt.SoftDecisionTree("mu", np.eye(3))
        pmt.BART("f", np.eye(3), leaf=pmt.NormalLeaf(0, 1), m=2)
        pm.Poisson("count", 2.0)
    with pytest.raises(NotImplementedError, match="f_forest"):
        pmt.RJHMC(model=other)


def test_it_refuses_inputs_set_anew():
    X, y = weak_step()
    with pm.Model() as one:
        mu = pmt.SoftDecisionTree("mu", X, y, 0.7, 2.0)
        pm.Normal("y", mu, 0.6, observed=y, shape=mu.shape)
        step = pmt.RJHMC()
        pm.set_data({"mu_X": X + 1.0})
    with pytest.raises(ValueError, match="inputs other than those"):
        begin(step)
    with one:
        pm.set_data({"mu_X": X})
    begin(step)
