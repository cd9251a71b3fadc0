"""What does a step of a forecast take, and a Shapley value of a curved function?

    python -m benchmarks.forecasts

prints milliseconds of CPU time: for each step and draw of `forecast`, for one step of one draw by
`set_data` and `pm.sample_posterior_predictive`, and for each row and draw of `shap_values` of
exp(f).
"""

from time import process_time

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt

STEPS, TREES = 24, (50, 200)
QUIET = {"progressbar": False, "random_state": 1}


def fitted(m):
    """A model of a series by its last value and two other columns, and 1,000 draws."""
    rng = np.random.default_rng(1)
    y = np.sin(np.arange(200) / 3) + rng.normal(0, 0.2, 200)
    table = pd.DataFrame({"last": y[:-1], "month": np.arange(199) % 12, "z": rng.random(199)})
    with pm.Model() as model:
        mu = pmt.BART("mu", pmt.Data("X", table), y[1:], m=m)
        sigma = pm.HalfNormal("sigma", 1)
        pm.Normal("y", mu, sigma, observed=y[1:], shape=mu.shape)
        idata = pm.sample(
            tune=100,
            draws=500,
            chains=2,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return model, idata, table


def milliseconds(call):
    """CPU time of a call that has been made before."""
    call()
    start = process_time()
    call()
    return 1e3 * (process_time() - start)


def by_set_data(model, idata, rows):
    """One step of one draw by new data."""
    with model:
        pmt.set_data({"X": rows})
        pm.sample_posterior_predictive(
            idata.isel(chain=[0], draw=[0]), predictions=True, progressbar=False, random_seed=1
        )


def main():
    """Print the numbers."""
    for m in TREES:
        model, idata, table = fitted(m)
        future = table.iloc[:STEPS]
        shap = {"func": np.exp, "background": 50, "draws": 50, **QUIET}
        path = milliseconds(lambda: pmt.forecast(idata, model, future, lags={"last": 1}, **QUIET))  # noqa: B023
        values = milliseconds(lambda: pmt.shap_values(idata, model, future[:10], **shap))  # noqa: B023
        step = milliseconds(lambda: by_set_data(model, idata, future[:1]))  # noqa: B023
        print(
            f"{m} trees: forecast {path / (1000 * STEPS):.3f} ms a step and draw, set_data "
            f"{step:.0f} ms; shap_values {values / 500:.2f} ms a row and draw"
        )


if __name__ == "__main__":
    main()
