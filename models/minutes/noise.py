"""Scripts as a recogniser would hear them: for training only, seeded.

    python -m models.minutes.noise --scripts DIR... --out DIR --seed N

Each script of the training split is written once more with errors: case and most punctuation are lost, small words
are dropped, words that sound alike are exchanged, now and then a word is said twice. Ids, times and truth stay.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

SUFFIX: Final = "~heard"

_ALIKE: Final = (
    ("their", "there", "they're"), ("to", "two", "too"), ("for", "four"), ("week", "weak"), ("right", "write"),
    ("meet", "meat"), ("no", "know"), ("by", "buy", "bye"), ("our", "are"), ("here", "hear"), ("new", "knew"),
    ("we'll", "will", "wheel"), ("i'll", "all", "aisle"), ("won't", "want"), ("send", "sent"), ("one", "won"),
    ("let's", "lets", "less"), ("mail", "male"), ("order", "border"), ("due", "do"), ("would", "wood"),
    ("your", "you're"), ("its", "it's"), ("than", "then"), ("son", "sun"), ("whole", "hole"), ("can", "can't"),
    ("ask", "asked"), ("call", "called"), ("decide", "decided"), ("book", "booked"), ("check", "checked"),
)  # fmt: skip
_SMALL: Final = frozenset(
    ["a", "an", "the", "to", "of", "and", "so", "is", "it", "that", "in", "on", "at", "be", "will"]
)
_TURNS_MEANING: Final = frozenset({"can", "can't", "won't", "want"})


def heard(text: str, chance: random.Random, punctuated: bool) -> str:
    """One utterance with errors."""
    plain = text if punctuated else re.sub(r"[^\w\s'£$%€&:/+-]|(?<!\d)[:/](?!\d)", " ", text).lower()
    out: list[str] = []
    for word in plain.split():
        if word.lower() in _SMALL and chance.random() < 0.06:
            continue
        out.append(_other(word, chance))
        if chance.random() < 0.01:
            out.append(out[-1])
    return " ".join(out) or plain


def _other(word: str, chance: random.Random) -> str:
    low = word.lower()
    if low in _TURNS_MEANING or chance.random() > 0.12:
        return word
    for group in _ALIKE:
        if low in group:
            return chance.choice([other for other in group if other != low])
    return word


def noisy(script: dict[str, Any], seed: int) -> dict[str, Any]:
    """A script with errors, under a name of its own."""
    chance = random.Random(f"{seed}:{script['meeting']}")
    punctuated = chance.random() < 0.3
    utterances = [{**u, "text": heard(u["text"], chance, punctuated)} for u in script["utterances"]]
    return {**script, "meeting": script["meeting"] + SUFFIX, "utterances": utterances}


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scripts", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    for folder in given.scripts:
        for path in sorted(folder.glob("*.json")):
            script = json.loads(path.read_text(encoding="utf-8"))
            if script.get("split") == "test":
                continue
            made = noisy(script, given.seed)
            name = f"{made['meeting']}.json"
            (given.out / name).write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
