"""The Optuna study that decides which layout runs next."""
