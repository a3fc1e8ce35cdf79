"""Accepting drafted steps by their meaning (SemanticSpec).

A small model drafts a step; a large one reads it in one pass. For each, a small network predicts
from the hidden states how likely that model is to say the same thing, in whatever words. The draft
is accepted with probability min(1, large / small). This is approximate: what is found need not be
what the large model alone would find.
"""
