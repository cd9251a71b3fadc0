"""What is compared: functions of training rows, their responses and new rows, to a law."""

import warnings

import numpy as np

import pymc_trees as pmt
from benchmarks.tables.laws import Gaussian, Interpolated
from pymc_trees.estimators.mixture import Mixture

LARGE = 5000
"""Rows from which on two chains are run."""
QUANTILES = np.array([0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99])
"""Of gradient boosting, one model each."""


def ours(X, y, X_new, seed, **given):
    """300 draws after 300 of four chains, or of two on the large sets; its other defaults."""
    chains = 4 if len(y) < LARGE else 2
    settings = {"draws": 300, "tune": 300, "chains": chains} | given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pmt.BARTRegressor(random_state=seed, **settings).fit(X, y).predict_dist(X_new)


def ours_constant(X, y, X_new, seed):
    return ours(X, y, X_new, seed, noise="constant")


def ngboost(X, y, X_new, seed):
    """Trees 2,000 at rate 0.01, as many as do best on a fifth of the rows (Duan 2020)."""
    from ngboost import NGBRegressor
    from sklearn.model_selection import train_test_split

    own, held, y_own, y_held = train_test_split(X, y, test_size=0.2, random_state=seed)
    found = NGBRegressor(n_estimators=2000, verbose=False, random_state=seed)
    found.fit(own, y_own, X_val=held, Y_val=y_held, early_stopping_rounds=50)
    best = NGBRegressor(n_estimators=found.best_val_loss_itr + 1, verbose=False, random_state=seed)
    law = best.fit(X, y).pred_dist(X_new)
    return Gaussian(law.loc, law.scale)


def gradient_boosting(X, y, X_new, seed):
    """scikit-learn's histogram gradient boosting, its defaults, a model for each quantile."""
    from sklearn.ensemble import HistGradientBoostingRegressor as Boosting

    found = [
        Boosting(loss="quantile", quantile=q, random_state=seed).fit(X, y).predict(X_new)
        for q in QUANTILES
    ]
    mean = Boosting(random_state=seed).fit(X, y).predict(X_new)
    return Interpolated(QUANTILES, np.column_stack(found), mean)


def stochtree(X, y, X_new, seed):
    """Mean of 200 trees and variance of 50, its other defaults, four chains of 500."""
    from stochtree import BARTModel

    model = BARTModel()
    model.sample(
        X_train=X,
        y_train=y,
        X_test=X_new,
        num_gfr=10,
        num_burnin=500,
        num_mcmc=500,
        general_params={"random_seed": seed, "num_chains": 4, "sample_sigma2_global": False},
        mean_forest_params={"num_trees": 200},
        variance_forest_params={"num_trees": 50},
    )
    return Mixture(np.asarray(model.y_hat_test).T, np.sqrt(np.asarray(model.sigma2_x_test)).T)


def pymc_bart(X, y, X_new, seed):
    """50 trees and one sigma, its defaults, four chains of 500."""
    import pymc as pm
    import pymc_bart as pmb

    with warnings.catch_warnings(), pm.Model():
        warnings.simplefilter("ignore")
        data = pm.Data("data", X)
        mu = pmb.BART("mu", data, y, m=50)
        noise = pm.HalfNormal("sigma", np.std(y))
        pm.Normal("y", mu, noise, observed=y, shape=mu.shape)
        given = {"progressbar": False, "compute_convergence_checks": False}
        idata = pm.sample(500, tune=500, chains=4, cores=2, random_seed=seed, **given)
        pm.set_data({"data": X_new})
        sigma = idata["posterior"]["sigma"].to_numpy().reshape(-1, 1)
        idata["posterior"] = idata["posterior"].to_dataset().drop_vars("mu")
        new = pm.sample_posterior_predictive(
            idata, var_names=["mu"], predictions=True, progressbar=False, random_seed=seed
        )
    mean = new["predictions"]["mu"].to_numpy().reshape(-1, len(X_new))
    return Mixture(mean, sigma)


METHODS = {
    "pymc_trees": ours,
    "pymc_trees, one sigma": ours_constant,
    "NGBoost": ngboost,
    "gradient boosting": gradient_boosting,
    "stochtree": stochtree,
    "pymc-bart": pymc_bart,
}
