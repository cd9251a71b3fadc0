"""What the tests share: helpers, slow twins of kernels, exact answers."""
