# Runs dbarts on the problem that run_dbarts.py wrote into the folder given as argument.
# The warm-up has no held-out rows. Afterwards every kept draw is evaluated on them inside
# the sweep; what that adds to a sweep is timed apart at the end and reported as prediction.

folder <- commandArgs(trailingOnly = TRUE)[1]
if (!requireNamespace("dbarts", quietly = TRUE)) stop("No module named 'dbarts' in R")

file_of <- function(name) file.path(folder, name)
table <- read.csv(file_of("settings.csv"), header = FALSE)
s <- setNames(as.list(table[[2]]), table[[1]])

read_matrix <- function(name, rows, columns) {
  values <- readBin(file_of(name), "double", rows * columns, endian = "little")
  matrix(values, rows, columns)
}
now <- function() as.numeric(Sys.time())
memory <- function(field) {
  path <- "/proc/self/status"
  if (!file.exists(path)) return(0)
  line <- grep(field, readLines(path), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) * 1024
}

X <- read_matrix("X.bin", s$n, s$p)
y <- c(read_matrix("y.bin", s$n, 1))
X_test <- read_matrix("X_test.bin", s$n_test, s$p)
predicting <- s$n_test > 0
kept <- s$n_draws %/% s$thin
before <- memory("VmRSS:")

seed_name <- intersect(c("rngSeed", "seed"), names(formals(dbarts::dbartsControl)))  # before 1.0, since
new_sampler <- function(seed) {
  # the arguments of the priors are read as expressions: give them numbers
  control <- do.call(dbarts::dbartsControl, c(
    list(
      n.trees = as.integer(s$m), n.chains = 1L, n.threads = 1L, n.thin = as.integer(s$thin),
      keepTrees = FALSE, keepTrainingFits = FALSE, updateState = FALSE
    ),
    setNames(list(as.integer(seed)), seed_name)
  ))
  eval(bquote(dbarts::dbarts(
    X, y,
    tree.prior = cgm(.(s$beta), .(s$alpha)), node.prior = normal(.(s$k)), control = control
  )))
}

warmup <- sampling <- predict <- 0
f_file <- file(file_of("f.bin"), "wb")
sigma_file <- file(file_of("sigma.bin"), "wb")
for (chain in seq_len(s$chains)) {
  sampler <- new_sampler(s$seed + chain - 1)
  start <- now()
  sampler$run(s$n_warmup %/% s$thin - 1L, 1L)
  warmup <- warmup + now() - start
  if (predicting) sampler$setTestPredictor(X_test)
  start <- now()
  draws <- sampler$run(0L, kept)
  took <- now() - start
  if (predicting) {
    start <- now()
    trial <- max(1L, min(kept, ceiling(200 / s$thin)))
    sampler$run(0L, trial)
    with_rows <- now() - start
    sampler$setTestPredictor(NULL)
    start <- now()
    sampler$run(0L, trial)
    extra <- max(0, with_rows - (now() - start)) * kept / trial
    predict <- predict + extra
    took <- took - extra
    writeBin(c(draws$test), f_file, size = 4, endian = "little")
  }
  sampling <- sampling + took
  writeBin(c(draws$sigma), sigma_file, endian = "little")
}
close(f_file)
close(sigma_file)

costs <- c(
  warmup = warmup, sampling = sampling, predict = predict,
  before = before, peak = memory("VmHWM:")
)
lines <- paste(names(costs), format(costs, scientific = FALSE, trim = TRUE), sep = ",")
lines <- sub("(before|peak),([0-9]+).*", "\\1,\\2", lines)
writeLines(
  c(lines, paste0("version,", packageVersion("dbarts"))),
  file_of("costs.csv")
)
