# Runs rbart_vi of dbarts or stan4bart: Rscript run_r.R PACKAGE FOLDER DRAWS CHAINS SEED
# Arrays are written as (chain, draw, ...), the last index fastest.

args <- commandArgs(trailingOnly = TRUE)
package <- args[1]; folder <- args[2]
draws <- as.integer(args[3]); chains <- as.integer(args[4]); seed <- as.integer(args[5])
trees <- 50L; rows <- 50L
if (!requireNamespace(package, quietly = TRUE)) stop(paste0("No module named '", package, "' in R"))

data <- read.csv(file.path(folder, "data.csv"))
write_all <- function(name, parts) {
  file <- file(file.path(folder, paste0(name, ".bin")), "wb")
  for (part in parts) writeBin(c(t(part)), file, endian = "little")
  close(file)
}
cpu <- function() sum(proc.time()[c(1, 2)])

tau <- a <- f <- list()
seconds <- 0
for (chain in seq_len(chains)) {
  start <- cpu()
  if (package == "dbarts") {
    fit <- dbarts::rbart_vi(
      y ~ . - group, data, group.by = group, n.trees = trees, n.samples = draws, n.burn = draws,
      n.chains = 1L, n.threads = 1L, n.thin = 1L, verbose = FALSE, keepTrees = FALSE,
      seed = seed + chain
    )
    seconds <- seconds + cpu() - start
    tau[[chain]] <- matrix(fit$tau, ncol = 1)
    a[[chain]] <- fit$ranef
    f[[chain]] <- fit$yhat.train[, seq_len(rows)]
  } else {
    fit <- stan4bart::stan4bart(
      y ~ bart(. - group) + (1 | group), data, chains = 1L, cores = 1L, iter = 2L * draws,
      warmup = draws, seed = seed + chain, verbose = -1L, bart_args = list(n.trees = trees)
    )
    seconds <- seconds + cpu() - start
    read <- function(what) dbarts::extract(fit, what)
    tau[[chain]] <- matrix(sqrt(c(read("Sigma")$group)), ncol = 1)
    a[[chain]] <- t(matrix(read("ranef")$group, ncol = length(tau[[chain]])))
    f[[chain]] <- t(read("indiv.bart"))[, seq_len(rows)]
  }
}
write_all("tau", tau); write_all("a", a); write_all("f", f)
writeLines(c(format(seconds), as.character(packageVersion(package))), file.path(folder, "seconds.txt"))
