"""Numbers of pages that look like measurements, and what they are instead."""

NUMBERS: dict[str, dict[str, str]] = {
    "everywhere": {
        "90% intervals": "a level",
        "95% intervals": "a level",
        "five minutes": "a title",
        "3.12 or newer": "a version",
    },
    "CHANGELOG.md": {
        "more than 256 MB": "a threshold",
        "draws 4 times 750, after 500, where it drew twice as many": "numbers of draws",
        "answers above 2 GB refused": "a threshold",
        "h5netcdf below 1.8": "a version",
        "numpy 2.1, h5py 3.12.1 and matplotlib 3.10.7": "versions",
        "and on 3.13": "a version",
        "## 0.1.0": "a version",
        "grew with probability 0.6 and pruned with 0.3": "weights of moves",
        "0.2 and 0.2 as documented": "weights of moves",
    },
    "docs/architecture/private_names.md": {
        "PyMC 6.3.0 and 6.4.0, PyTensor 3.2.4 and 3.3.8, ArviZ 1.3, numba 0.66 and "
        "0.68": "versions",
        "Python 3.12 and 3.14": "versions",
    },
    "docs/faq.md": {"PyMC 6.3 or newer, below 7, and Python 3.12 to 3.14": "versions"},
    "docs/glossary.md": {
        "below 1.01, the chains agree": "a threshold",
        "A 90% interval runs from the 5% to the 95% quantile": "levels",
    },
    "docs/install.md": {"Python 3.12 to 3.14 and PyMC 6.3 or newer": "versions"},
    "docs/benchmarks.md": {
        "nearer to 90%": "a level",
        "less often than 95%": "a level",
    },
    "docs/causal.md": {"R-hat of the effects of units is above 1.05": "a threshold of `fit`"},
    "docs/classification.md": {
        "between -3 and 3 with probability 0.95": "a prior",
        "a predicted probability of 70%, about 70% are": "an example of calibration",
        "costs ten times as much": "an example of costs",
    },
    "docs/counts.md": {
        "a prior sd of 1.5": "a prior",
        "simulated with 0.4 and 0.1": "the simulation",
    },
    "docs/data_model/capacity.md": {
        "three times the prior mean of the number of nodes": "the default",
        "where `mu` takes 8 MB": "8 bytes a row",
        "1,000 draws of them take 42 MB": "bytes of an encoding",
    },
    "docs/dcc_tree.md": {
        "within 0.06 nats": "a tolerance of tests",
        "on two inputs (within 0.3)": "a tolerance of tests",
    },
    "docs/estimators.md": {"is above 1.05": "a threshold of `fit`"},
    "docs/likelihoods.md": {
        "simulated probabilities are 0.8 and 0.3": "the simulation",
        "sd 1 to 1.5": "a prior",
        "the average, sd 1.5": "a prior",
    },
    "docs/correlated_outputs.md": {"simulated correlation is 0.8": "the simulation"},
    "docs/recipes.md": {"simulated with 0.3 and 0.1": "the simulation"},
    "docs/convergence.md": {
        "R-hat below 1.01": "a threshold",
        "only a few rows exceed 1.01": "a threshold",
        "## R-hat is 1.2": "a title",
    },
    "docs/papers/pg_bart.md": {
        "(sd 0.1), a value for each vertex (sd 3) and noise of sd 0.01": "the data",
        "alpha = 0.95, beta = 1, 0.5, 0.4, 0.3, 0.25": "the prior",
        "within 0.75 noise sd": "a criterion",
    },
    "docs/papers/rjhmc.md": {
        "With probability 0.2 it proposes to split a leaf, with 0.2": "settings",
        "A stump is split with 0.4": "a setting",
        "against quadrature over thresholds and noise: within .02": "a tolerance of tests",
        "arXiv:2312.01577": "a number of a paper",
        "22(3)": "a number of a journal",
    },
    "docs/papers/tree_smc.md": {"probability 0.95 (1 + depth)^-0.5": "the prior"},
    "docs/large_data.md": {
        "1 MB per draw": "16 bytes a node",
        "set `max_nodes` to four times that number": "advice",
        "more than 256 MB as float64": "a threshold",
        "39 GB of memory and 40 GB of disk": "sums of the table above",
        "At ten times the rows": "the rows of the text",
        "2 TB in all, which takes 20 minutes at 2 GB/s": "50 columns times 40 GB",
        "of its rows, 1.0 GB": "bytes of the table over 16 shards",
    },
    "docs/quickstart.md": {
        "below 1.01 they agree": "a threshold",
        "the ends of a 90% interval": "a level",
    },
    "docs/sharded.md": {
        "beyond 16 times that range": "a threshold",
        "four times the work of the shards but not four times the latency": "four chains",
    },
    "docs/priors.md": {
        "the range of 95% of prior values": "a level",
        "hold 95% of prior values": "a level",
        "0.95 and 2; 0.95 and 1": "defaults",
        "makes it three times as likely": "a weight",
        "with 95% probability": "a level",
    },
    "docs/samplers.md": {"from a quarter to twice the usual weight": "a setting"},
    "docs/troubleshooting/long_runs.md": {
        "within five seconds": "a timeout",
        "grown 16 times as large": "a threshold",
    },
    "docs/troubleshooting/others.md": {"h5netcdf is older than 1.8": "a version"},
    "docs/troubleshooting/questions.md": {"Results of more than 2 GB": "a threshold"},
    "docs/troubleshooting/trees_and_pictures.md": {"an interval of 94%": "a level"},
}
"""Page -> words -> what the number is."""

TABLES: dict[str, dict[str, str]] = {
    "docs/data_model.md": {"| field | split node | leaf | unused row |": "an encoding"},
    "docs/large_data.md": {
        "| what | bytes | n = 10⁶ | n = 10⁷ | n = 10⁸ |": "computed from the second column"
    },
    "docs/sharded.md": {
        "| rows | 1 shard | 8 shards | 16 shards | 32 shards | 64 shards |": (
            "computed from stored results, as `claims.sharded_sweeps` does"
        )
    },
}
"""Page -> first line of a table with columns of numbers -> where they come from."""
