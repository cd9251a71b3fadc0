# Fits drbart (Orlandi, Murray, Linero and Volfovsky 2021) to the tables in the folder given as
# argument, which `density.py` wrote, and writes distribution functions and densities of the
# response, means over the draws, at a grid.

given <- commandArgs(trailingOnly = TRUE)
setwd(given[1])
n_tune <- as.integer(given[2])
n_draws <- as.integer(given[3])
if (!requireNamespace("drbart", quietly = TRUE)) stop("No module named 'drbart' in R")
set.seed(1)
train <- as.matrix(read.csv("train.csv", header = FALSE))
new <- as.matrix(read.csv("new.csv", header = FALSE))
grid <- scan("grid.csv", quiet = TRUE)
p <- ncol(new)
fit <- drbart::drbart(
  train[, p + 1], train[, seq_len(p), drop = FALSE],
  nburn = n_tune, nsim = n_draws, nthin = 25, printevery = 1e9,
  mean_file = "mean.txt", prec_file = "prec.txt"
)
# its names of the dimensions fit one column of x only
at_rows <- drbart:::predict.drbart
environment(at_rows) <- new.env(parent = asNamespace("drbart"))
assign("dimnames<-", function(x, value) x, environment(at_rows))
for (type in c("distribution", "density")) {
  found <- at_rows(fit, new, grid, type = type)$preds
  write.table(apply(found, 1:2, mean), paste0(type, ".csv"), sep = ",",
    row.names = FALSE, col.names = FALSE)
}
