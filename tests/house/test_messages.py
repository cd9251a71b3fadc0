"""The pages of `docs/troubleshooting` explain every error and warning of the package, and no other.

A message is read from the source of the call that makes it, with … for each value put in. A page
quotes pieces of messages as **`piece`**; a message is explained where some page has a piece of it.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text() for path in (ROOT / "docs/troubleshooting").glob("*.md")}
NOT_OURS = "others"
"""Page whose pieces are other packages' words."""
OURS = "\n".join(text for name, text in PAGES.items() if name != NOT_OURS)

# Name of a function that makes a message, other than those called ...Error or ...Warning.
MAKERS = {"warn", "warning", "refusal"}

# Exception -> why no user meets it.
INTERNAL = {
    "NotRowwiseError": "caught by read_target, which goes on to the likelihood as a whole",
    "MixedRowsError": "the same; or its words end in a refusal",
    "LeafNotProposedError": "caught by read_target, which raises the refusal of the first target",
    "NotASliceError": "caught where the model is read, which goes on with all outputs",
    "DataBesideError": "caught where a function is read, which then has these data as columns",
    "NotRecognisedError": "caught where the model is read; its words end in a refusal",
    "NotCarriedError": "caught where a predictor is made; its words end in a refusal",
    "NoLawError": "the same",
    "TooLongError": "caught by to_sql; what it holds is a number in a refusal",
    "DamagedError": "caught by load; its words end in the message of a file",
}

# Message -> why it has no entry of its own.
NO_ENTRY = {
    **dict.fromkeys(
        [
            "… does not answer ….",
            "a sweep with grow needs prune too, and prune needs grow",
            "a kernel that was left out of a handle was called",
            "A field of type … cannot be passed by pointer.",
            "…: … types for … names.",
            "… is not among the kernels that a … is made for.",
            "…: argument … is no … by address.",
            "…: argument … is …, but is declared as ….",
            "…: another move has this name.",
            "…: outputs must be a kernel at the top level of a module that can be imported by its "
            "name, since compiled code is kept under that name.",
            "…: n_outputs=… must be that of its kernel, and between 1 and n_values=….",
            "… is not a contiguous array of one dimension",
            "… is not a contiguous array of codes or of float64",
        ],
        "for those who extend the package: docs/extending says what a kernel has to answer",
    ),
    "module 'pymc_trees' has no attribute …": "Python's own words for a wrong name",
    "its entries are of type …": "quoted in another message",
    "complex numbers have no order": "quoted in another message",
    "it holds … of type …": "quoted in another message",
    "they are no finite numbers": "quoted in another message",
    **dict.fromkeys(
        [
            "a tree is of another kind",
            "the arrays of a tree have different lengths",
            "the state of a tree is not one",
            "the nodes of a tree do not fit each other",
            "an array of a tree is of another type or shape",
            "more rows are counted than there are",
            "rows are of another type",
            "rows are not finite",
            "labels are not classes",
            "another number of trees",
            "format …, not …",
            "… for …",
        ],
        "quoted in the message of a damaged pickle",
    ),
    "its arrays are not those of a forest": "quoted in the message of a damaged file",
    "its arrays are not those of Mondrian trees": "the same",
    "its program has an unknown instruction": "the same",
    "… is …; …": "a reason in a refusal, which a page explains",
    "… (… is not invertible)": "the same",
}

VERBS = (
    "add ask call check choose compare convert declare describe drop encode fit free give grow "
    "have impute increase install keep leave let look make marginalise merge name observe pass put "
    "read rebuild remove rename replace rescale sample save scale select set start take unstack "
    "use write"
).split()
_BEGIN = r"(?:^|[.:;] |, (?:or |and |so )?|\bor |\band )"
PROPOSES = re.compile(f"{_BEGIN}(?:{'|'.join([*VERBS, *map(str.title, VERBS)])}) ")
"""Where a sentence, or a part of one, begins by what to do."""

# Message that proposes something -> why no row of `support.remedies` tries it.
UNTRIED = {
    "… no longer has the same factor, not 0, at all rows: set the data back with pm.set_data, or "
    "let pm.sample() assign a step.": "laws/test_one_sided.py::"
    "test_a_step_after_new_data_has_their_factor",
    "sample_weight: noise='density' takes weights of 0 and 1 only, since the mean of several "
    "observations does not have the density of one. Use noise='forest', or give repeated "
    "rows.": "estimators/test_density.py::test_what_makes_no_sense_is_named",
    "idata: draws were left out, so that new ones would not follow them: of the draws up to … it "
    "has …. Resume the whole result, and leave draws out afterwards; only the first ones may be "
    "left out before.": "inference/test_resume.py, by both halves of "
    "test_draws_that_new_ones_would_not_follow_are_refused",
    "train has a follow-up up to …, but there are events up to …, whose weights it does not tell: "
    "give tau=…, which leaves out events from then on, or a train with a longer "
    "follow-up.": "survival/test_scores.py::"
    "test_rows_that_are_followed_longer_than_the_training_rows",
    "… of group … has the dimensions …: choose an output, as in "
    "idata.isel(…).": "plots/test_answers.py::"
    "test_predictive_densities_are_of_one_output_wherever_the_draws_stand",
    "family=… with the response …: its levels … have no order. Give data[…] = "
    "pandas.Categorical(data[…], categories=[...], ordered=True), with the levels from the lowest "
    "to the highest.": "formula/test_model.py::test_orders_of_the_levels_of_a_response",
    "noise='density' needs two rows or more, but X has 1 sample. Use "
    "noise='constant'.": "estimators/test_density.py::test_one_value_of_y_and_few_rows",
    **dict.fromkeys(
        [
            "Formulas need the package formulae: install it with pip install "
            '"pymc_trees[formula]".',
            "formula=…: give a text such as 'y ~ bart(x1 + x2) + z'.",
            "formula=…: give one ~, between the response and the terms.",
            "…: give columns joined by +, then keyword arguments, as in …(x1 + x2, alpha=0.9).",
            "…: … is set by the formula; leave it out.",
            "…: a forest takes columns of data joined by +, and no functions or products of them. "
            "Add the function to data as a column.",
            "formula: give a response before the ~.",
            "…:…: … must be one column of numbers; make a column of 0 and 1 for each level.",
            "family=… with the response …: write proportion(successes, trials) for a binomial, and "
            "for no other family.",
            "… with family=…: …() is for numbers; give the column alone.",
            "family=… with the response …: it needs a column of three or more levels; give "
            "data[…].astype('category').",
            "family=… with the response …, of levels …: name the one that counts as success, as in "
            "…['…'] ~ ...",
            "… has a column with one value at all rows, which sets no scale for its prior; leave "
            "the term out of the formula.",
            "priors names …: choose from ….",
            "priors[…]=…: give a distribution such as pymc.Normal.dist(0, 1), or numbers, at which "
            "the parameter is held.",
            "priors[…]: effects of groups are Normal about 0; give pymc.Normal.dist(0, sd), where "
            "sd is a number, or a distribution itself such as pymc.HalfNormal.dist(1), not an "
            "expression of distributions.",
            "priors[…] is a distribution with random parameters, which would not be variables of "
            "the model: give numbers as its parameters.",
            "family=… is not supported: choose from …, or write a model with pymc_trees.BART.",
            "link=…: choose from … for family=….",
            "data has … rows with missing cells in …: give dropna=True to leave them out, or "
            "impute them. In columns of forests they may stay.",
            "family=… has the link …, under which the predictor must be positive at every row, "
            "and a forest is not. Give link='log'.",
            "family=… has the link 'identity', under which the predictor must lie between … and … "
            "at every row, and it starts at …. Give link=….",
            "family=…: the response … holds …, which is impossible under it; choose another "
            "family.",
            "formula has no terms; add an intercept, 1, or a forest.",
            "…: leave k out, or leaf, which says how far leaf values go.",
            "… with family=…: it has one output, and each class needs a forest; use bart(...).",
            "model was not made by pymc_trees.model in this process; call it with the training "
            "data first, or predict with pymc.sample_posterior_predictive.",
            "data lacks the columns … of the formula: add them.",
            "idata lacks the parameters … of the model, so that they would be drawn from their "
            "priors: keep them among var_names of pm.sample().",
        ],
        "formula/test_parse.py and formula/test_model.py: a right formula is every other test",
    ),
    **dict.fromkeys(
        [
            "Compiled kernels cannot be kept on disk (…), so that every process compiles them "
            "anew. Free disk space there, or name another folder in the environment variable "
            "NUMBA_CACHE_DIR.",
            "… could not be kept as float64 in a file in … (…). Free disk space, set the "
            "environment variable TMPDIR to another folder, or give … as a float64 array in "
            "memory.",
            "path=… could not be written (…): an existing file is unchanged. Free disk space, or "
            "give another folder.",
            "shards: the Dask client has no workers; start some first.",
            "shards: Ray is not running; call ray.init() first.",
            "A shard does not respond: … reports …: …. Its rows and residuals are lost; check the "
            "worker and run again.",
        ],
        "about the machine: a full disk, a cluster that is not there",
    ),
    **dict.fromkeys(
        [
            "This pickled … was written by another version of pymc_trees: fit it again.",
            "This pickled Mondrian forest is damaged, or was written by another version of "
            "pymc_trees (…): fit it again.",
            "… …. Leave it to pm.sample(), which assigns ….",
        ],
        "what it proposes is what every other test of the kind begins with",
    ),
    "to_onnx: … would take some … GB, and a model of ONNX has 2 at the most. Give draws=, fewer "
    "of them.": "predictor/test_onnx.py::test_what_is_refused",
    "A topology of … nodes was proposed and left out, as max_nodes=…. If topologies of nearly this "
    "size have much weight, declare the SoftDecisionTree with a larger one, for example "
    "max_nodes=….": "only long runs propose such: rows on max_nodes declare larger ones",
    "leaf: a … has no finite output at … training rows, the first of them row …. Missing cells are "
    "NaN in a leaf: impute them in the columns it uses, or use other columns.": "for those who "
    "write leaves of their own",
    "… has missing labels: leave these rows out.": "the tests of estimators fit the other rows",
    "sample_weight sums to … over … rows: the posterior is as certain as with … rows. Give "
    "sample_weight / sample_weight.mean() where weights are relative.": "estimators/"
    "test_bart_estimators.py does so",
    "draws=…: a chain was … draws ahead of the others when the run was interrupted; give at least "
    "that many.": "inference/test_resume.py",
    "chains=…: this run has … chains a topology. Give DCCTree the settings of the first "
    "run.": "inference/test_sample_dcc.py",
    "Another step changed …: DCCTree samples all free variables of the model jointly; leave them "
    "to DCCTree.": "inference/test_dcc_tree_step.py",
    "Residuals of … outgrew the range that y and the leaf prior give them: give the leaf a mean "
    "and an sd for which the sum of trees can reach y.…": "inference/test_sharded.py, by a unit "
    "that is too fine; a sane leaf is every other test",
    "vars: … is not a Gaussian vector in the mean of Gaussian rows with a forest, nor a scalar "
    "that enters only the prior of vectors that are named too. Leave it to pm.sample(), which "
    "assigns a step.": "terms/test_rows.py::test_what_is_drawn_jointly",
    "vars: … is not a pm.HalfNormal or pm.Exponential vector with an entry for each row in the "
    "mean of pm.Normal rows with a forest, nor the scale or sd of such rows whose vector is named "
    "too. Leave it to pm.sample(), which assigns a step.": "laws/test_one_sided.py",
    "At this point the density of … is 0 or not finite: give an initial value (initvals) inside "
    "its prior.": "terms/test_rows.py::test_a_start_outside_the_prior",
    **dict.fromkeys(
        [
            "coords: … has labels such as …, and in the draws such as …: give labels of the same "
            "type, so that known groups are recognised.",
            "coords: … has the labels … twice: give each group one.",
            "… has no entries for the new labels of …: its shape, or a parameter of its prior, has "
            "the length that it had when the model was declared. Declare it with dims= and without "
            "shape=, and what is known of groups as pm.Data with dims=…, which is set together "
            "with the coordinates.",
        ],
        "posterior/test_new_groups.py::test_what_is_refused, and "
        "posterior/test_new_groups.py::test_independent_entries_are_drawn_from_their_population",
    ),
    "The draws lack …, on which the prior of new entries depends: keep it among var_names of "
    "pm.sample().": "posterior/test_new_groups.py::test_hyperparameters_that_were_not_kept",
    "idata has no … in its group constant_data, which are needed to predict new groups: pass the "
    "unchanged result of pm.sample().": "posterior/test_new_groups.py"
    "::test_data_of_the_fit_are_needed_for_a_covariance",
    "The prior of the known entries of … is another one with the new labels of …: give data under "
    "which their mean and covariance stay as they were. ….": "posterior/test_new_groups.py"
    "::test_a_vector_with_a_covariance",
    "…: what it holds for known labels of … changes with the new ones, since each entry is made of "
    "several. Keep the known labels first and in their order; if that is not enough, make each "
    "entry of its own entry alone (pm.ZeroSumNormal instead of a mean that is subtracted).": ""
    "posterior/test_new_groups.py::test_a_walk_of_increments_goes_on, and "
    "posterior/test_new_groups.py::test_deviations_that_sum_to_zero",
    "… has converged (R-hat up to …, ESS at least … over rows), but … by themselves have not "
    "(R-hat up to …; ESS from …): the data do not tell them apart, since what one gains the others "
    "lose. Use what depends on the sum, such as predictions. To have the parts as well, pass no "
    "step for the forest: pm.sample() draws them jointly where rows are Gaussian (GaussianTerms). "
    "Or give effects of groups the prior pm.ZeroSumNormal.": "laws/test_gaussian_terms.py",
    "… is used in another form: use the function that SoftDecisionTree returns.": "of a graph "
    "that no front-end makes",
    "A tree drawn from the prior has more nodes than max_nodes: declare the tree with a larger "
    "max_nodes, or with a prior that favours smaller trees.": "of trees in an order; particles "
    "outgrow such room before, and propose the same",
    "No particle has a positive weight. Use more particles, or another proposal.": "of numbers "
    "that underflow",
    **dict.fromkeys(
        [
            "idata: its training rows were left out (training_data=False of save), and with them "
            "the states of the chains. Resume from a file that has them, or start anew from its "
            "trees with pymc_trees.update.",
            "training_data=False: idata has neither the group forests nor observed_data, which say "
            "how many rows there are. Give the whole result of pm.sample, or leave training_data "
            "out.",
            "training_data=False: the group … has groups of its own, which may hold rows: remove "
            "it with del idata[…].",
            "The training rows of this … were left out when it was saved (training_data=False), "
            "and its PyMC model needs them. Use its predictions, or read a file that has them.",
            "training_data=False: a … computes answers from the training rows. Leave "
            "training_data out, or save what predicts alone, with .predictor().save(path).",
            "The draws of … are read lazily, anew in each call, which took … s. Read them once, "
            "with pymc_trees.open(path), or with idata.load() where they fit in memory.",
        ],
        "posterior/test_without_rows.py",
    ),
    **dict.fromkeys(
        [
            "with_columns: give at least one column, such as z=z.",
            "with_columns: … must be a vector random variable of the model, with an entry "
            "for each row and without named dimensions; give constant columns in X.",
            "with_columns: … must itself be a free variable of the model, or one that is "
            "partly observed, and not a function of some: declare pm.Normal(...) or "
            "another distribution with shape=n, and give that. Constant columns belong in "
            "X.",
            "with_columns: the prior of … must be independent from row to row given other "
            "variables: declare it as pm.Normal, pm.Uniform or another of PyMC's plain "
            "continuous distributions, with shape=n.",
            "with_columns: … has … categories, more than there are rows to draw to define the "
            "prior: give it an order, by split_rules={…: 'continuous'}.",
            "cuts of …: split_rules says that it is split by sets of categories, which have no "
            "cuts. Leave out one of the two.",
            "split_rules: … has the categories … to …, but sets are of 0 to … at most. Give it "
            "the rule 'continuous', which takes them in their order.",
            "X: dimensions of with_columns have no names. Give the constant columns as an "
            "array, a frame or pm.Data.",
            "with_columns: … are columns of X, too: give other names.",
            "split_rules: the random column … is continuous, and split by cuts. Leave it out "
            "of split_rules.",
            "with_columns: … has … entries, but X has … rows: declare it with shape=….",
            "with_columns: draws from the prior of … are not finite. Give cuts={…: ...}.",
            "X has random columns, which only BART and DecisionTree take: give constant "
            "columns, for example the means of the random ones.",
            "X has random columns: the forest needs constant leaves, such as a NormalLeaf, "
            "and the prior of alpha and beta. Leave out tree_prior and response, and give "
            "leaf=pymc_trees.NormalLeaf(...).",
            "The function of a forest has no gradient with respect to its trees, nor to "
            "random columns of X: leave both to pm.sample(), which assigns "
            "pymc_trees.Hybrid and pymc_trees.LatentColumn; find_MAP, fit and other "
            "methods that need gradients of every variable cannot treat a forest.",
            "… depends on random columns of X, whose cells differ from draw to draw: give "
            "a frame with the columns … as …, without missing cells in …. predictions() "
            "integrates over what is unknown.",
            "moves=…: … has random columns (with_columns), whose rows move. Use … only.",
            "vars: … is not a random column of BART or DecisionTree. Declare it with "
            "pymc_trees.with_columns, or leave it to pm.sample().",
            "ParticleGibbs: … has random columns (with_columns), whose rows move. Leave it "
            "to pm.sample(), or use CGM.",
            "Tempering: … has random columns (with_columns), whose rows move. Use the step "
            "without Tempering.",
            "… is a random column that enters the model in another way than through "
            "with_columns or row by row, such as sorted, or in one forest twice. Use the "
            "variable as it is.",
            "… is a random column whose prior has no quantiles in PyMC (…). Give it a "
            "distribution for which pm.icdf is implemented, such as pm.Normal, pm.Uniform "
            "or pm.StudentT.",
            "… is a random column, and something that depends on it is not known to act "
            "row by row (…). Write the likelihood with one term for each row.",
            "At this point a random column of … is not finite: give initial values "
            "(initvals) inside its prior.",
        ],
        "distributions/test_with_columns.py and step_methods/test_latent_column.py: a right column "
        "is every other test",
    ),
    **dict.fromkeys(
        [
            "…: … has the shape …: give a number for each row, or one for all, and NaN where it is "
            "unknown.",
            "…: … has … entries, but there are … rows: give one for each row, or one for all.",
            "idata lacks …, which the priors of … depend on: keep them among var_names of "
            "pm.sample, or ….",
            "… takes the random columns … beside its trees, and its mean over them is no sum over "
            "intervals between cuts: …, or ask for the function of trees inside it.",
            "…: the random column … is unknown at these rows, so it cannot be changed by a step: "
            "give values, {…: (0.0, 1.0)} in comparisons, or ….",
            "… at rows where … are unknown: the priors of these are not known there (…). Make what "
            "they depend on pm.Data and give it too, or ….",
            "…: … measures the random column …, and the law of the column given it is known for a "
            "Normal around a Normal only, or a discrete column: leave … out, which takes the "
            "prior, or ….",
            "… evaluates forests with different random columns of the name …: give one of them "
            "another name in with_columns.",
            "X lacks cells of random columns, over which … does not integrate: give them in X, or "
            "call predict or draws.",
            "X lacks cells of the random column …, and the predictor cannot integrate over its law "
            "(…): give the column in X, or ask for a function of trees alone.",
        ],
        "posterior/test_random_columns_at_new_rows.py and "
        "predictor/test_random_columns_of_predictors.py: other tests give the column",
    ),
    **dict.fromkeys(
        [
            "…: … measures the random columns … together, which are unknown: leave … out, which "
            "takes the priors, or ….",
            "The measurements … are impossible at some row, whatever … is: give numbers that they "
            "can be, or leave them out.",
            "The random column … has … values at these rows, and sums are over … at most: give "
            "the column in the table.",
        ],
        "posterior/test_discrete_columns_at_new_rows.py: other tests give the column, or possible "
        "measurements",
    ),
    "declare returned a …: it must return a pymc.Model.": "begins with the name of an argument",
    **dict.fromkeys(
        [
            'z holds …, which may be doses or numbers of arms. Say treatment="dose" for doses. '
            "Compare arms two by two: of the rows in which z is … or …, give z == ….",
            "z has … columns: give one vector of 0 and 1. Where they are arms, compare these two "
            "by two: of the rows that are in column 0 or 1, give column 1.",
        ],
        "causal/test_treatments_and_outcomes.py::test_what_the_errors_say_works",
    ),
    **dict.fromkeys(
        [
            "size: leave it out, and give shape=(K, n) for K outputs.",
            "ax: leave it out; the picture has three panels in a figure of its own.",
            "bart_var_name=…: choose from ….",
            "bartrv=… has no draws yet: call pm.sample() first, or give the draws as idata=.",
        ],
        "test_pymc_bart.py does each of these",
    ),
    'y holds … only, and the noise of these models is normal. Say outcome="normal" if '
    "differences of means by a normal model are meant; otherwise give z to a BART as a column of "
    "X, observe y by …, and ask comparisons() for the effect of that column.": "causal/"
    "test_treatments_and_outcomes.py::test_another_law_is_a_model_of_pymc, and "
    "causal/test_treatments_and_outcomes.py::test_what_the_errors_say_works for the first",
    **dict.fromkeys(
        [
            "X has the dimensions …: give two, the rows and the columns.",
            "X has the rows …, but dims=…: use the same name, with … among dims.",
            "X has the dimensions …, of which the first is that of the rows, and dims=…: give "
            "X.transpose(…, …).",
            "X has named dimensions, but the function has others than the rows: evaluate it at "
            "X.values, and name them all by pymc.dims.as_xtensor(..., dims=...).",
        ],
        "distributions/test_dims.py::test_other_names_are_refused_with_what_works",
    ),
    "X has named dimensions, and … has …: name them with dims=, using … for the rows.": ""
    "distributions/test_dims.py::test_names_in_names_out",
    "The backend … cannot compile functions of trees, here of …, whose code is compiled by numba: "
    "leave backend= (or mode=) out, or give backend='numba'.": "distributions/"
    "test_batches_backends_starts.py::test_backends_that_compile_trees",
    "initvals: … follows from the trees of …, and cannot be set: leave it out, or give … a draw of "
    "a fit of this model.": "distributions/test_batches_backends_starts.py"
    "::test_values_of_other_fits",
    "… is a pm.Simulator, whose likelihood of … is simulated anew at each evaluation: trees need "
    "one that can be computed. Declare it as a distribution that has a density, for example "
    "pm.Normal of what it is compared with, or pm.CustomDist(..., logp=...).": "distributions/"
    "test_batches_backends_starts.py::test_what_a_simulator_can_be_replaced_by",
    **dict.fromkeys(
        [
            "features=…: a tuple is a pair of columns, which only plot_pdp supports; give a list "
            "for one panel per column.",
        ],
        "posterior/test_named_columns.py::test_several_columns_in_every_way",
    ),
    **dict.fromkeys(
        [
            "…=…: give one column at a time, or a pair as a tuple, such as ….",
            "…=…: give a pair of columns alone.",
        ],
        "posterior/test_named_columns.py::test_a_tuple_of_two_is_a_pair_as_in_scikit_learn",
    ),
    **dict.fromkeys(
        ["… are several columns: give one here."],
        "posterior/test_named_columns.py::test_one_column_in_every_way",
    ),
    "… evaluates its trees at rows made of those of X, with a column held: there is no closed "
    "form. Use partial_dependence, comparisons or permutation_importance.": "posterior/"
    "test_effects_by_name.py::test_of_the_effect_of_a_causal_forest",
    **dict.fromkeys(
        [
            "summary=…: give at least one, and each once.",
            "summary=…: … is no summary; give some of … and probabilities of quantiles from 0 to "
            "1, such as ('mean', 'sd', 0.05, 0.95).",
            "where has the shape … and the type …: give a mask, True or False for each of the … "
            "rows.",
            "where=…: give 'present', or a mask of the rows.",
            "where: no row is left; give a mask with at least one True.",
        ],
        "posterior/test_map_predictions.py: what is right is every other test",
    ),
    **dict.fromkeys(
        [
            "The data have different numbers of rows now, …: set them together with "
            "pymc_trees.set_data, or give all of them, data={...}.",
            "… depends on …, with an entry for each row: give these for the new rows too, …={…: "
            "..., …: ...}.",
            "… takes … for each row of the model, which is unknown at other rows: ask about the "
            "rows of the model, make indices and numbers of rows pm.Data and give them too, or use "
            "the function of trees inside it.",
            "data: the new rows have different numbers, …: give one entry for each row, or a "
            "single number for all.",
            "data: … entries for the … rows of …: give one for each row, a single number, or other "
            "rows of … too.",
            "data: … has the shape … and the type …: give numbers of shape (…,), as the model has "
            "them.",
            "data: … has the shape … and the type …: give numbers of shape …, as the model has "
            "them.",
            "data: … holds numbers that are not finite: leave those rows out.",
            "data: … is no label of …: choose from ….",
            "data: … is … in the model, which cannot hold …: give whole numbers, or declare it as "
            "floats.",
            "… is data of the model beside X, which has no missing cells: give finite numbers.",
            "… is … in the model, which cannot hold …: give whole numbers, or declare it as "
            "floats.",
            "…: … has other numbers in the column … than what was given beside it: they are one "
            "column, so give it the same numbers in both.",
            "… is a column of … and of …, with other contents: give one of them another name in "
            "the model.",
            "… evaluates trees at rows made of …, and uses … beside them: make X one pm.Data with "
            "that column, and take it from there, X[:, k].",
            "…: … is data of the model without an entry for each row of …: compare "
            "predictions(data={…: ...}) at two values.",
            "… takes numbers or variables with an entry for each of … rows, but … has … rows now: "
            "set the rows back that the model was declared with, or make indices and numbers of "
            "rows pm.Data and set them too.",
        ],
        "posterior/test_whole_model.py::test_what_the_errors_propose_comes_through, and all before "
        "it",
    ),
    **dict.fromkeys(
        [
            "X=None: give the rows of the future, or a number of steps.",
            "X=… has no columns, but … are not filled by lags or update: give a table with them.",
            "X has steps of … rows: give each step the same series.",
            "lags: … are not columns of the model: choose from ….",
            "lags: … holds … of the same step, which is not known when … is computed: name … "
            "before it in var_name, or give a lag of at least 1.",
            "history holds … values of …, and lags reach … back: give history={…: ...}, at least "
            "the last … values, oldest first.",
            "history holds missing values of … among the last …, and soft trees take none: give "
            "history={…: ...} without NaN.",
            "… of … has the shape …: give (times, …), a column for each row of a step.",
            "known has … steps of …: give …, as X has.",
            "… is one array for the responses …: give a dict, …={name: array}.",
            "sample is one function for the responses …: give a dict, sample={name: function}.",
            "… takes …, which are not known in a step: name …, or variables of the draws.",
            "… names …: choose from ….",
            "var_name=…: name a function or an observed variable.",
            "The model has the observed variables … that depend on trees: choose one by var_name, "
            "or a Deterministic of trees.",
            "… is a …, which cannot be drawn here: name a function of the model by var_name, and "
            "draw by sample=.",
        ],
        "posterior/test_forecasts.py::test_what_is_refused, and what is right is every other test",
    ),
    **dict.fromkeys(
        [
            "background: … are no data with an entry for each row of …: give only such, and what "
            "is the same for all rows in X=.",
            "… takes … for each row of the model, which is no column: make indices and numbers of "
            "rows pm.Data, or use the function of trees inside it.",
            "… is not finite where columns of a row of X and of the background are mixed, in chain "
            "…, draw …: give a background, or a func, for which all such rows have a value.",
            "… is more than the X of …: give its columns alone.",
        ],
        "posterior/test_shapley_of_any_function.py::test_what_is_refused_and_what_the_errors_propose",
    ),
    **dict.fromkeys(
        [
            "… depends on the observed …, which are unknown at other rows: use the function of "
            "trees inside it.",
            "… takes an entry of … for each row of the model, and which one is unknown at other "
            "rows: use the function of trees inside it.",
        ],
        "posterior/test_effects_by_name.py::test_what_cannot_be_known_at_other_rows_is_refused",
    ),
}


def pieces(text: str) -> list[str]:
    """Pieces of messages quoted in a text."""
    return [piece.strip() for piece in re.findall(r"\*\*`([^`]+)`\*\*", text)]


def text_of(node) -> str:
    """Text of an expression with … for each value put in; "" where there is no text at all."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(v) if isinstance(v, ast.Constant) else "…" for v in node.values)
    if isinstance(node, ast.BinOp):
        return (text_of(node.left) or "…") + (text_of(node.right) or "…")
    return ""


def _grouped(pairs) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, node in pairs:
        found.setdefault(name, set()).add(text_of(node))
    return {name: texts - {""} for name, texts in found.items()}


def assigned(nodes) -> dict[str, set[str]]:
    """Texts that each name of a file is given."""
    return _grouped(
        (node.targets[0].id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    )


def returned(files) -> dict[str, set[str]]:
    """Texts that each function of the package gives back."""
    return _grouped(
        (function.name, node.value)
        for nodes in files
        for function in nodes
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
    )


def called(call: ast.Call) -> str:
    """Last name of what is called."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def messages() -> dict[str, list[str]]:
    """Messages of the package, and the places that make them."""
    files = {
        path: list(ast.walk(ast.parse(path.read_text())))
        for path in sorted((ROOT / "pymc_trees").rglob("*.py"))
    }
    given_back = returned(files.values())
    names = {path: assigned(nodes) for path, nodes in files.items()}
    constants = {k: v for found in names.values() for k, v in found.items() if k.isupper()}

    def texts_of(path, node) -> set[str]:
        if isinstance(node, ast.IfExp):
            return texts_of(path, node.body) | texts_of(path, node.orelse)
        if isinstance(node, ast.Name):
            return names[path].get(node.id, set()) | constants.get(node.id, set())
        if isinstance(node, ast.Call):
            return given_back.get(called(node), set())
        return {text_of(node)} - {""}

    found: dict[str, list[str]] = {}
    for path, nodes in files.items():
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            maker = called(node)
            if not (maker in MAKERS or maker.endswith(("Error", "Warning"))) or maker in INTERNAL:
                continue
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            texts = set().union(*(texts_of(path, argument) for argument in node.args))
            # A severity ("error"), and what only puts other messages together, are none.
            ours = {text for text in texts if re.search(r"\w+ ", text)}
            for text in ours if texts else {f"(no text to be read: {ast.unparse(node)})"}:
                found.setdefault(" ".join(text.split()), []).append(place)
    return found


def explains(piece: str, message: str) -> bool:
    """Whether a piece is one of the message, and too long to be one of many others."""
    return piece == message or (len(piece.replace("…", "")) >= 12 and piece in message)


MESSAGES = messages()


def test_every_message_is_explained():
    known = pieces(OURS)
    missing = {
        message: places
        for message, places in MESSAGES.items()
        if message not in NO_ENTRY and not any(explains(piece, message) for piece in known)
    }
    lines = "\n".join(f"{', '.join(places)}\n    {text}" for text, places in missing.items())
    assert not missing, f"docs/troubleshooting has no entry for\n{lines}"


def test_nothing_is_explained_that_no_longer_exists():
    ours = pieces(OURS)
    gone = [piece for piece in ours if not any(explains(piece, text) for text in MESSAGES)]
    assert gone == [], "take them off docs/troubleshooting"
    assert [message for message in NO_ENTRY if message not in MESSAGES] == []


def proposes(message: str) -> bool:
    """Whether a message says what to do."""
    return PROPOSES.search(message) is not None


def test_what_every_message_proposes_is_tried():
    from support.remedies import ROWS  # here: it builds models

    tried = [row.message for row in ROWS]
    untried = {
        message: places
        for message, places in MESSAGES.items()
        if proposes(message)
        and message not in UNTRIED
        and not any(explains(piece, message) for piece in tried)
    }
    lines = "\n".join(f"{', '.join(places)}\n    {text}" for text, places in untried.items())
    assert not untried, f"tests/support/remedies has no row that does what is proposed by\n{lines}"
    assert [text for text in UNTRIED if text not in MESSAGES or not proposes(text)] == []
    assert [piece for piece in tried if not any(explains(piece, m) for m in MESSAGES)] == []


def test_tests_named_as_reasons_exist():
    for reason in UNTRIED.values():
        for file, test in re.findall(r"(\w+/test_\w+\.py)(?:::(\w+))?", reason):
            assert f"def {test or 'test_'}" in (ROOT / "tests" / file).read_text(), reason


@pytest.mark.parametrize(
    ("message", "is_one"),
    [
        ("Y=None sets no scale for the leaves: give Y, or leaf=NormalLeaf(mean, sd).", True),
        ("X has no names. Give a frame.", True),
        ("alpha=…: must be in (0, 1).", False),
        ("grow=…, prune=…: both must be positive.", False),
        ("the draws give no R-hat", False),
    ],
)
def test_proposals_are_seen(message, is_one):
    assert proposes(message) == is_one


def test_no_piece_stands_twice():
    found = pieces("\n".join(PAGES.values()))
    assert len(found) == len(set(found))


def test_the_index_names_every_page():
    index = (ROOT / "docs/troubleshooting.md").read_text()
    assert set(re.findall(r"\(troubleshooting/(\w+)\.md\)", index)) == set(PAGES)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("f'a {x} b'", "a … b"),
        ("'a ' 'b'", "a b"),
        ("f'{x!r}: ' + more", "…: …"),
        ("str(op)", ""),
    ],
)
def test_texts_are_read(code, text):
    assert text_of(ast.parse(code, mode="eval").body) == text


def test_short_pieces_explain_only_what_they_are():
    assert explains("… must be …, got …", "… must be …, got …")
    assert not explains("… must be …", "alpha must be …, got …")
    assert explains("must be an integer", "alpha must be an integer, got …")
