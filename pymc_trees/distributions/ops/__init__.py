"""What stands in the graph? The random variables, their log-probabilities, their functions of X."""
