"""`sapwood probe`: predictors for drafted steps, trained on the models that are to use them."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from app import output
from app.again import command_line
from app.exit_codes import ExitCode
from app.options import Number

if TYPE_CHECKING:
    from engine.client.probing import Feature, Report

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_data = click.option(
    "--data", type=_FOLDER, required=True, metavar="FOLDER", help="Where the samples lie."
)
_pair = click.option(
    "--probe", type=_FOLDER, required=True, metavar="FOLDER", help="Where the predictors lie."
)
_seed = click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, help="Default: 0.")


@click.group()
def probe() -> None:
    """Train the predictors with which a generator accepts steps that a draft model writes.

    In order: collect samples of both models, label them, train, and evaluate. A pair of predictors
    is good for the two files that it was trained on and for no others.
    """


@probe.command()
@_data
@click.option("--draft", metavar="MODEL", required=True, help="Writes drafts.")
@click.option("--generator", metavar="MODEL", required=True, help="Reads and judges them.")
@click.option("--problems", type=_FILE, metavar="FILE", help="Problems, a JSON object a line.")
@click.option(
    "--stories", type=click.IntRange(1), metavar="N", help="N of the seedling's stories instead."
)
@click.option(
    "--samples", type=click.IntRange(2, 60), default=20, help="Of each model. Default: 20."
)
@click.option("--max-steps", type=click.IntRange(1), default=40, help="Of a path. Default: 40.")
@click.option("--step-tokens", type=click.IntRange(1), default=256, help="Default: 256.")
@click.option("--context", type=click.IntRange(64), default=2048, help="Default: 2048.")
@click.option("--temperature", type=Number(0, min_open=True), default=0.8, help="Default: 0.8.")
@_seed
def collect(
    data: Path,
    draft: str,
    generator: str,
    problems: Path | None,
    stories: int | None,
    samples: int,
    max_steps: int,
    step_tokens: int,
    context: int,
    temperature: float,
    seed: int,
) -> ExitCode:
    """Sample steps of both models after every step of the generator's solutions.

    It can be stopped at any time; the same command goes on.
    """
    from app.outcome import engine_errors
    from app.problems import read_problems
    from engine.client import probing

    if (problems is None) == (stories is None):
        raise click.UsageError("Give either --problems or --stories.")
    if problems is not None:
        texts = [problem.text for problem in read_problems(problems)]
    else:
        texts = probing.stories(stories or 0)
    sizes = probing.Sizes(samples, step_tokens, max_steps, context)
    done = 0
    try:
        with engine_errors():
            for done in probing.collect(
                draft, generator, texts, data, sizes, temperature=temperature, seed=seed
            ):
                if done % 10 == 0 or done == len(texts):
                    output.narrate(f"{done} of {len(texts)} problems")
    except KeyboardInterrupt:
        output.narrate(f"Stopped: {done} of {len(texts)} problems are collected and kept.")
        output.narrate(f"To go on: {command_line(click.get_current_context())}")
        return ExitCode.STOPPED
    output.narrate(f"Next: sapwood probe label --data {shlex.quote(str(data))}")
    return ExitCode.OK


@probe.command()
@_data
@click.option(
    "--nli",
    type=_FOLDER,
    metavar="FOLDER",
    help="A checkpoint that tells entailment. Default: steps with the same equations are equal.",
)
def label(data: Path, nli: Path | None) -> ExitCode:
    """Find out which samples mean the same, and how likely each meaning is."""
    from app.outcome import engine_errors
    from engine.client.probing import label as label_all

    with engine_errors():
        count = label_all(data, nli)
    output.narrate(f"{count} contexts are labelled.")
    return ExitCode.OK


@probe.command()
@_data
@_pair
@click.option(
    "--feature",
    type=click.Choice(("last", "stacked", "concatenated")),
    default="last",
    help="Hidden states of the last layer, of all in the mean, or of all side by side. "
    "Default: last, which costs least.",
)
@_seed
def train(data: Path, probe: Path, feature: str, seed: int) -> ExitCode:
    """Train a pair of predictors on labelled samples."""
    from app.outcome import engine_errors
    from engine.client import probing

    def tell(role: str, epoch: int, learnt: float, stopped: float) -> None:
        output.narrate(f"{role} epoch {epoch}: error {learnt:.4f}, on other problems {stopped:.4f}")

    with engine_errors():
        probing.train(data, probe, cast("Feature", feature), seed=seed, tell=tell)
    output.data(f"{probe}\n")
    return ExitCode.OK


@probe.command("eval")
@_data
@_pair
@click.option("--floor", type=Number(0, 1), default=0.0, help="Least ratio. Default: 0.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object.")
def evaluate(data: Path, probe: Path, floor: float, as_json: bool) -> ExitCode:
    """Measure a pair on problems that it did not learn from."""
    from app.outcome import engine_errors
    from engine.client.probing import evaluate as measure

    with engine_errors():
        report = measure(data, probe, floor=floor)
    output.data(json.dumps(asdict(report)) + "\n" if as_json else _text(report))
    return ExitCode.OK


def _text(report: Report) -> str:
    lines: list[str] = []
    for name, quality in (("draft", report.draft), ("generator", report.target)):
        lines.append(
            f"{name}: {quality.count} samples, squared error {quality.error:.4f} (of the mean "
            f"label: {quality.spread:.4f}), correlation {quality.correlation:.3f}, calibration "
            f"error {quality.calibration:.3f}"
        )
        lines += [
            f"  {each.predicted:.2f} predicted, {each.labelled:.2f} labelled ({each.count})"
            for each in quality.bins
        ]
    found = report.agreement
    lines += [
        f"accepted: {found.accepted:.1%} of drafted steps; by the labels {found.ideal:.1%}",
        f"the generator means them too: {found.meant:.1%} of all, "
        f"{found.meant_accepted:.1%} of those accepted, {found.meant_rejected:.1%} of the others",
    ]
    return "".join(line + "\n" for line in lines)
