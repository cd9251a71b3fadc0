"""Does particle Gibbs mix as Lakshminarayanan, Roy and Teh (2015) report?

Files in reading order: `reported` the paper's numbers; `hypercube`, `houses` the data; `model` the
prior; `samplers` what is compared; `chain` one chain; `judge` from chains to numbers; `tables`,
`pictures`; `__main__` the command.
"""
