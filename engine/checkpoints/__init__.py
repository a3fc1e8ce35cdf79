"""Trained models as their makers publish them: tensors by name, in safetensors or pickles."""
