"""Token models on torch and transformers, for checkpoints as the model hub has them.

Nothing here is imported unless such a checkpoint is named: torch is an optional dependency.
"""
