"""Published checkpoints made into GGUF files, with the head of a verifier beside them."""
