"""The answer of a comparison: one or two sentences per variant, and one table that fits a terminal.

Bytes are those of all messages in both directions (boundary `messages`), averaged over seeds. Differences are paired by
seed against a reference: by default the first variant that is dense in both directions, or else the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from fedreuse.report.paired import true_pairs
from fedreuse.report.statistics.contrasts import Assessment, assess
from fedreuse.report.tables import Table
from fedreuse.report.variants import Variant, by_variant, reference_of

if TYPE_CHECKING:
    from fedreuse.report.results import Result

__all__ = [
    "Answer",
    "answer",
    "answer_table",
    "answers",
    "difference_text",
    "plain_answer",
    "score_text",
    "size_text",
    "verdict",
    "waiting",
]

_BOUNDARY = "messages"
_AS_MUCH = 0.005
_FEW_SEEDS = 3
"""Smallest number of seeds for which an interval is shown; below it, the difference of each seed."""
_MARGINS = {"accuracy": 0.01}
"""Loss that counts as none, by metric; 0.02 for others."""


@dataclass(frozen=True)
class Answer:
    """Bytes and score of one variant, compared with the reference.

    Args:
        variant: Name of the variant.
        sent: Bytes of all messages in both directions, mean over seeds; None where they were not counted.
        instead: Bytes of the reference; for runs without one, of dense FedAvg with the same cohorts and replies.
        score: Mean test score (validation score if no test split was evaluated); None without one.
        reference_score: The same of the reference; None if the variant has none.
        difference: Paired differences of the scores by seed; None without a pair.
        metric: Name of the metric, such as `accuracy`.
        split: `test` or `validation`.
        num_seeds: Number of runs behind `score`.
        reference: Name of the reference; None if bytes are compared with dense FedAvg as computed.
        rounds: Rounds of the variant and of the reference, if they differ.
        is_personal: True if `score` is that of the clients' own models.
    """

    variant: str
    sent: float | None
    instead: float | None
    score: float | None
    reference_score: float | None
    difference: Assessment | None
    metric: str
    split: str
    num_seeds: int
    reference: str | None
    rounds: tuple[str, str] | None = None
    is_personal: bool = False

    @property
    def saved(self) -> float | None:
        """Share of the bytes that is saved, at most 1; negative if more is sent."""
        return None if self.sent is None or not self.instead else 1 - self.sent / self.instead

    @property
    def margin(self) -> float:
        """Loss of score that counts as none."""
        return _MARGINS.get(self.metric, 0.02)

    @property
    def is_share(self) -> bool:
        """True if the score is shown in percent and its differences in points."""
        return self.metric == "accuracy"


def answers(results: Sequence[Result], reference: str | None = None) -> list[Answer]:
    """Return an answer for every variant but the reference; for a single variant, its answer against dense FedAvg.

    Args:
        results: Runs; incomplete ones are left out.
        reference: Name of the variant to compare with; None: the first dense one, else the first.
    """
    variants = by_variant(results)
    if not variants:
        return []
    split = "test" if any(result.test_score is not None for variant in variants for result in variant.results) else (
        "validation"
    )  # fmt: skip
    baseline = reference_of(variants, reference)
    others = [variant for variant in variants if variant is not baseline]
    if baseline is None or not others:
        return [_answer(variant, None, split) for variant in variants]
    return [_answer(variant, baseline, split) for variant in others]


def _answer(variant: Variant, baseline: Variant | None, split: str) -> Answer:
    def score(result: Result) -> float | None:
        found: float | None = getattr(result, f"{split}_score")
        return found

    pairs = {} if baseline is None else true_pairs(variant, baseline, split)
    return Answer(
        variant.name,
        variant.mean(_sent),
        variant.mean(_dense) if baseline is None else baseline.mean(_sent),
        variant.mean(score),
        None if baseline is None else baseline.mean(score),
        assess(pairs) if pairs else None,
        variant.results[0].metric,
        split,
        len(variant.results),
        None if baseline is None else baseline.name,
        None if baseline is None or _rounds(variant) == _rounds(baseline) else (_rounds(variant), _rounds(baseline)),
        any(result.is_personal for result in variant.results),
    )


def _rounds(variant: Variant) -> str:
    return " or ".join(map(str, sorted({result.rounds for result in variant.results})))


def _sent(result: Result) -> float | None:
    saving = result.savings.get(_BOUNDARY)
    return None if saving is None else float(saving.used("both"))


def _dense(result: Result) -> float | None:
    saving = result.savings.get(_BOUNDARY)
    return None if saving is None else float(saving.dense_up_bytes + saving.dense_down_bytes)


def answer(found: Answer) -> str:
    """Return an answer as sentences.

    Example:
        >>> answer(Answer("lean", 4.9e6, 98e6, 0.807, None, None, "accuracy", "test", 1, None))
        'lean sends 4.9 MB instead of 98 MB of dense FedAvg (20 times less, both ways). Accuracy 80.7 % (one seed).'
    """
    return " ".join(part for part in (_bytes_sentence(found), _score_sentence(found), _rounds_sentence(found)) if part)


def _rounds_sentence(found: Answer) -> str:
    if found.rounds is None:
        return ""
    return (
        f"It ran {found.rounds[0]} rounds and {found.reference} {found.rounds[1]}: that alone changes bytes and scores."
    )


def _bytes_sentence(found: Answer) -> str:
    if found.sent is None or not found.instead:
        return f"{found.variant}: bytes were not counted."
    other = "" if found.reference is not None else " of dense FedAvg"
    if abs(found.sent / found.instead - 1) < _AS_MUCH:
        return f"{found.variant} sends {size_text(found.sent)}, as much as {found.reference or 'dense FedAvg'}."
    return (
        f"{found.variant} sends {size_text(found.sent)} instead of {size_text(found.instead)}{other} "
        f"({_times(found.sent, found.instead)}, both ways)."
    )


def _times(sent: float, instead: float) -> str:
    """Return a ratio in words; below a tenth of difference, in percent."""
    ratio = instead / sent if sent else float("inf")
    if ratio >= 1.1:
        return f"{ratio:.0f} times less" if ratio >= 9.95 else f"{ratio:.1f} times less"
    return f"{100 * (1 - sent / instead):.0f} % less" if sent < instead else f"{100 * (sent / instead - 1):.0f} % more"


def _score_sentence(found: Answer) -> str:
    if found.score is None or isnan(found.score):
        return f"It has no {found.split} {found.metric}."
    name = found.metric.replace("_", " ")
    head = f"{name[0].upper()}{name[1:]}" if found.split == "test" else f"Validation {name}"
    shown = f"{head}{' of own models' if found.is_personal else ''} {score_text(found.score, found)}"
    if found.reference_score is None or found.reference is None:
        return f"{shown} ({_seeds(found.num_seeds)})."
    shown += f" instead of {score_text(found.reference_score, found)}"
    if found.difference is None:
        reason = "the runs share no seed with the same data, cohorts and initial model"
        return f"{shown}." if found.rounds else f"{shown}: {reason}, so that the difference says little."
    return f"{shown}{_difference(found, found.difference)}."


def difference_text(found: Answer) -> tuple[str, str]:
    """Return the difference to the reference (accuracy: in points), and its interval or, below 3 seeds, each seed."""
    difference = found.difference
    if difference is None:
        return "-", "no pair of runs"
    seeds = list(difference.by_seed.values())
    mean = _signed(difference.mean, found)
    if len(seeds) < _FEW_SEEDS or difference.t is None:
        return mean, "one seed" if len(seeds) == 1 else f"by seed {', '.join(_signed(one, found) for one in seeds)}"
    return mean, f"95 %: {_signed(difference.t.low, found)} to {_signed(difference.t.high, found)}, {len(seeds)} seeds"


def verdict(found: Answer) -> str:
    """Return in a few words what the difference of the scores shows; empty without a reference or a score.

    Example:
        >>> verdict(Answer("lean", 1.0, 9.0, 0.8, 0.8, None, "accuracy", "test", 2, "dense"))
        'too few seeds to tell'
    """
    if found.reference is None or found.score is None:
        return ""
    difference, same = found.difference, found.margin
    if difference is None or difference.t is None or len(difference.by_seed) < _FEW_SEEDS:
        return "too few seeds to tell"
    margin = f"{100 * same:g} point" if found.is_share else f"{same:g}"
    if difference.t.high < -same:
        return f"loses more than {margin}"
    if difference.t.low < -same:
        return f"may lose more than {margin}: the interval is too wide"
    return f"loses less than {margin} (95 %)"


def _difference(found: Answer, difference: Assessment) -> str:
    seeds = list(difference.by_seed.values())
    if len(seeds) == 1:
        return " (one seed: the difference may be chance)" if abs(seeds[0]) > 0 else " (one seed)"
    if len(seeds) < _FEW_SEEDS or difference.t is None:
        by_seed = ", ".join(_signed(one, found) for one in seeds)
        return f": difference {by_seed} in {len(seeds)} seeds, too few for an interval"
    ends = f"{_signed(difference.t.low, found)} to {_signed(difference.t.high, found)}"
    return f": difference {_signed(difference.mean, found)}{_unit(found)} (95 %: {ends}, {len(seeds)} seeds)"


def _unit(found: Answer) -> str:
    return " points" if found.is_share else ""


def score_text(score: float, found: Answer) -> str:
    """Return a score; accuracy in percent."""
    return f"{100 * score:.1f} %" if found.is_share else f"{score:.4g}"


def _signed(number: float, found: Answer) -> str:
    """Return a difference with its sign, in points for accuracies; never a minus before a zero."""
    shown = f"{100 * number:+.1f}" if found.is_share else f"{number:+.3g}"
    return shown.lstrip("+-") if float(shown) == 0 else shown


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"mean of {count} seeds"


def size_text(number: float) -> str:
    """Return bytes with a decimal unit and two significant digits or more.

    Example:
        >>> size_text(4_920_000), size_text(98_400_000), size_text(830)
        ('4.9 MB', '98 MB', '830 B')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= 0.9995 * size:
            scaled = number / size
            return f"{scaled:.1f} {unit}" if scaled < 9.95 else f"{scaled:,.0f} {unit}"
    return f"{number:.0f} B"


def waiting(found: Answer, num_clients: int, mbit_per_second: float) -> str:
    """Return how long a client's messages take on a line, over the whole run, beside those of the reference.

    Args:
        found: The answer.
        num_clients: Clients of the federation; the bytes are divided among them.
        mbit_per_second: Rate of each client's line in both directions, positive.
    """
    if found.sent is None or not found.instead:
        return ""
    spent, instead = (8 * number / num_clients / (1e6 * mbit_per_second) for number in (found.sent, found.instead))
    return (
        f"On a {mbit_per_second:g} Mbit/s line the messages of a client take {_duration(spent)} instead of "
        f"{_duration(instead)} in all."
    )


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def answer_table(results: Sequence[Result], reference: str | None = None) -> Table | None:
    """Return the table below the sentences: score, difference, saving and megabytes of every variant; None if empty."""
    variants = by_variant(results)
    found = {one.variant: one for one in answers(results, reference)}
    if not found:
        return None
    some = next(iter(found.values()))
    unit = ", %" if some.is_share else ""
    rows = [_row(variant, found.get(variant.name), some) for variant in variants]
    headers: tuple[str, ...] = (
        "variant",
        f"{some.split}\n{some.metric}{unit}",
        "difference\n(95 %)",
        "saved,\nboth ways",
        "MB",
        "time",
    )
    if some.reference is None:  # nothing to differ from
        headers, rows = (*headers[:2], *headers[3:]), [(*row[:2], *row[3:]) for row in rows]
    legend = (
        f"Bytes of all messages, both ways. Means over seeds; differences by seed to {some.reference or 'nothing'}."
    )
    differing = {variant.name: _rounds(variant) for variant in variants}
    if len(set(differing.values())) > 1:
        legend += " Rounds: " + ", ".join(f"{name} {rounds}" for name, rounds in differing.items()) + "."
    if some.reference is None:
        legend = "Bytes of all messages, both ways, against dense FedAvg with the same cohorts."
    return Table("Result", headers, tuple(rows), legend)


def _row(variant: Variant, found: Answer | None, some: Answer) -> tuple[str, ...]:
    score = variant.mean(lambda result: getattr(result, f"{some.split}_score"))
    sent = variant.mean(_sent)
    difference = "-"
    if found is not None and found.difference is not None:
        difference = _signed(found.difference.mean, found)
        if found.difference.t is not None and len(found.difference.by_seed) >= _FEW_SEEDS:
            difference += f" ({_signed(found.difference.t.low, found)} to {_signed(found.difference.t.high, found)})"
    saved = "-" if found is None or found.saved is None else f"{100 * found.saved:.1f} %"
    seconds = variant.mean(lambda result: result.seconds) or 0.0
    return (
        variant.name,
        "-" if score is None else f"{100 * score:.1f}" if some.is_share else f"{score:.4g}",
        difference,
        saved,
        "-" if sent is None else f"{sent / 1e6:,.2f}",
        _duration(seconds),
    )


def plain_answer(found: Answer) -> dict[str, Any]:
    """Return an answer as plain data for `--json`."""
    difference = found.difference
    return {
        "variant": found.variant,
        "reference": found.reference or "dense FedAvg (computed)",
        "boundary": f"{_BOUNDARY}, both ways",
        "bytes": found.sent,
        "reference_bytes": found.instead,
        "saved": found.saved,
        "metric": found.metric,
        "split": found.split,
        "score": found.score,
        "reference_score": found.reference_score,
        "difference": None if difference is None else difference.mean,
        "difference_95": None if difference is None or difference.t is None else list(difference.t),
        "seeds": found.num_seeds,
        "sentence": answer(found),
    }
