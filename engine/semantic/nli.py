"""Entailment by a sequence classifier of transformers, such as DeBERTa on MNLI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.protocol.events import Trouble


def load_entailment(folder: Path) -> Callable[[str, str, str], bool]:
    """Whether a step follows from the text before it and another step.

    The context is part of the premise, since a step's words mean little without it.

    Args:
        folder: a checkpoint with its tokenizer.

    Raises:
        EngineError: torch or transformers is missing, or the checkpoint cannot be used.
    """
    try:
        import torch
        import transformers
    except ImportError:
        raise EngineError(
            Trouble.USAGE,
            "Labels by entailment need torch and transformers, which are not installed.",
            "Install them with: pip install 'sapwood[torch]'",
        ) from None
    try:
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        model: Any = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise EngineError(
            Trouble.MODEL,
            f"{folder} is no sequence classifier that transformers can load: {reason}.",
            "Name the folder of an NLI model, microsoft/deberta-v2-xlarge-mnli for example.",
        ) from None
    labels = {str(name).lower(): int(at) for name, at in model.config.label2id.items()}
    if "entailment" not in labels:
        raise EngineError(
            Trouble.MODEL,
            f"{folder} tells {', '.join(labels)} apart, and not entailment.",
            "Name a model for natural language inference.",
        )
    tokenizer.truncation_side = "left"  # of a long context, the end is what matters
    entailment = labels["entailment"]
    model.eval()

    def entails(context: str, first: str, second: str) -> bool:
        premise = f"{context.strip()}\n\n{first.strip()}".strip()
        inputs = tokenizer(premise, second.strip(), return_tensors="pt", truncation="only_first")
        with torch.inference_mode():
            return int(model(**inputs).logits[0].argmax()) == entailment

    return entails
