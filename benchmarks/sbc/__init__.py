"""Simulation-based calibration of forests and their hyperparameters."""
