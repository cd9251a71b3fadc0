# Fits one of the R packages to the problem in the folder given as argument, which
# `soft_bart.py` wrote. Every kept draw is evaluated on the held-out rows within the sweep.

given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]
package <- given[2]
if (!requireNamespace(package, quietly = TRUE)) stop("No module named '", package, "' in R")

file_of <- function(name) file.path(folder, name)
table <- read.csv(file_of("settings.csv"), header = FALSE)
s <- setNames(as.list(table[[2]]), table[[1]])

read_matrix <- function(name, rows, columns) {
  values <- readBin(file_of(name), "double", rows * columns, endian = "little")
  matrix(values, rows, columns)
}

X <- read_matrix("X.bin", s$n, s$p)
y <- c(read_matrix("y.bin", s$n, 1))
X_test <- read_matrix("X_test.bin", s$n_test, s$p)

# draws of f at the held-out rows: a matrix (rows, draws) for each chain
fits <- list(
  dbarts = function() {
    fit <- dbarts::bart(
      X, y, X_test,
      nskip = s$n_warmup, ndpost = s$n_draws, nchain = s$chains, nthread = 1L,
      combinechains = FALSE, verbose = FALSE, seed = as.integer(s$seed)
    )
    lapply(seq_len(s$chains), function(chain) t(fit$yhat.test[chain, , ]))
  },
  SoftBart = function() {
    lapply(seq_len(s$chains), function(chain) {
      set.seed(s$seed + chain - 1)
      options <- SoftBart::Opts(num_burn = s$n_warmup, num_save = s$n_draws)
      fit <- SoftBart::softbart(X, y, X_test, opts = options, verbose = FALSE)
      t(fit$y_hat_test)
    })
  }
)

start <- proc.time()
draws <- fits[[package]]()
took <- proc.time() - start
writeBin(unlist(draws), file_of("f.bin"), size = 4, endian = "little")
lines <- paste(
  c("seconds", "cpu", "version"),
  c(took[["elapsed"]], took[["user.self"]] + took[["sys.self"]], paste(packageVersion(package))),
  sep = ","
)
writeLines(lines, file_of("costs.csv"))
