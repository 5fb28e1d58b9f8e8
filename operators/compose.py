"""Writing: item texts out of the words that were said, and the summary of a meeting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from math import log

from operators.language.dates import DuePhrase
from operators.language.foreign import in_english
from operators.language.gist import (
    ENDS_AT,
    NUMBERS,
    TIMES,
    as_task,
    counts,
    without_loose_end,
    without_remark,
)
from operators.language.text import STOP, Clause, Token, clause_of, clauses_of, expand, stem, stems, words_of
from operators.language.words import words_in
from operators.understand.state import Draft, State, Telling
from operators.understand.types import DraftItem, MeetingContext, Quote, SummarySentence

MAX_SUMMARY_WORDS = 160
MAX_SUMMARY_TASKS = 5
MAX_ITEM_WORDS = 32

_LEADING = words_in("""
    just also then now quickly definitely certainly personally please so okay right well and but
    actually maybe yes no fine good simply really still probably oh that's great
""")
_TRAILING = words_in("""
    okay please yes right then sorry too though actually really now yeah and so but or because
    with for by on at in to the a an of anyway mind alright ok yep honestly is are maybe until
    till before if when which who as i you we they ha haha hahaha hehe lol
""")
_ASIDE = re.compile(
    r"^(?:they|it is|it has|i am|i have|i know|i think|he|she|that is|you know|"
    r"you see|so that|because|if you|okay|yes|"
    r"i mean|but|honestly|no|then i|and then i know|would you|could you|will you|can you|is that|"
    r"as you know|leave (?:it|that) (?:to|with)|please|all right|for the love|we are|you are|so)\b"
)
_PRONOUN = words_in("""
    it that this them him her those these one there they he she everything
""")


_LEAD_IN = r"^(?:(?:okay|so|well|then|right|and|but|yes|good|fine|great|now|maybe|perhaps|all right|no) )*"
_PROPOSING = re.compile(
    r"^(?:(?:the |our |new |final |next )?decision: )(?:(?:we |that |to )?(?:decided |agreed )?(?:that |to )?)?|"
    + _LEAD_IN
    + r"(?:i (?:would )?(?:suggest|propose)(?: that)?|i (?:would )?say(?: that)? (?=we )|i would say|"
    r"i (?:think|believe|guess|feel)(?: that)?|my (?:suggestion|proposal|idea) (?:is|would be)(?: that| to)?|"
    r"let us(?: just| all| simply| rather| maybe| say| definitely)*|(?:shall|should|why do not) we(?: just)?|"
    r"(?:what|how) about|(?:it|that|this|which) is (?:now )?(?:decided|settled|agreed)(?: then)?(?: that)?|"
    r"we (?:have |all )?(?:decided|agreed)(?: that| to| on)?|agreed) "
)
"""What opens a proposal or its confirmation; the matter follows."""
_OPENING = re.compile(
    _LEAD_IN
    + r"(?:sorry (?:to interrupt|for interrupting|to cut in|for the interruption)|if i may|by the way|"
    r"(?:i (?:have|have got) |just )?(?:a|one|another)(?: more| last)?(?: quick| short)? question"
    r"(?: for (?:you|@|everyone))?) (?:but |and )?"
)
"""What only asks for the floor."""


def without_opening(tokens: Sequence[Token], opening: re.Pattern[str]) -> tuple[Token, ...]:
    """The words after an opening, where they still say something; else all of them."""
    said = clause_of(tuple(tokens))
    match = opening.match(said.norm)
    if match is None or match.end() >= len(said.norm):
        return tuple(tokens)
    rest = said.tokens[said.token_at(match.end()) :]
    return tuple(tokens) if len(rest) < 2 or says_little(rest) else rest


def task_tokens(clause: Clause, span: tuple[int, int] | None, dues: Sequence[DuePhrase]) -> tuple[Token, ...]:
    """Words of the task without time phrases, asides and empty ends."""
    first, last = span or (0, len(clause.norm))
    tokens = list(clause.between(first, last))
    timed = {t.first for due in dues for t in clause.between(due.first, due.last)}
    tokens = _without_times(_until_aside(without_remark(_without_called(as_task(tokens)), tasks=True)), timed)
    return tuple(without_loose_end(_trim(tokens)[:MAX_ITEM_WORDS]))


def _closes_idly(tokens: Sequence[Token], idle: frozenset[str]) -> bool:
    """Whether the last word can go: not the *then* of *till then*."""
    last = tokens[-1].low
    return last in idle and not (last == "then" and len(tokens) > 1 and tokens[-2].low in ENDS_AT)


_AFTER_NO = words_in("""
    i we you he she it they that this there the a an let our my your his her their no wait well but not then okay sorry
    please what who how when so and just
""")


def _opens_idly(tokens: Sequence[Token]) -> bool:
    """Whether the first word can go: *no* only where it answers, not where it denies (*no parking on Sunday*)."""
    first = tokens[0]
    if first.low not in _LEADING or first.low != "no" or len(tokens) == 1:
        return first.low in _LEADING
    return first.comma or first.ends_clause or expand(tokens[1].text).split()[0] in _AFTER_NO


def _without_times(tokens: list[Token], timed: set[int]) -> list[Token]:
    """Words without those of times; a comma behind these stays behind what is left."""
    kept: list[Token] = []
    for token in tokens:
        if token.first not in timed:
            kept.append(token)
        elif token.comma and kept:
            kept[-1] = replace(kept[-1], comma=True)
    return kept


def _without_called(tokens: list[Token]) -> list[Token]:
    """Cut a name with which somebody is spoken to at the end (*..., on Friday, Tom*)."""
    return tokens[:-1] if len(tokens) > 2 and tokens[-1].person and tokens[-2].comma else tokens


def _until_aside(tokens: list[Token]) -> list[Token]:
    """Cut where the speaker turns to a remark after a comma (*..., they like me there*)."""
    for place, token in enumerate(tokens[:-1]):
        if (
            token.comma
            and place >= 2
            and not counts(tokens[place + 1 :])
            and _ASIDE.match(" ".join(expand(t.text) for t in tokens[place + 1 : place + 5]))
        ):
            return tokens[: place + 1]
    return tokens


def _trim(tokens: list[Token]) -> list[Token]:
    while tokens and (_opens_idly(tokens) or (tokens[0].person and len(tokens) > 1 and tokens[0].comma)):
        tokens = tokens[1:]
    while tokens and _closes_idly(tokens, _TRAILING):
        tokens = tokens[:-1]
    if len(tokens) > 2 and tokens[-1].person and tokens[-2].comma:
        tokens = tokens[:-1]
    return tokens


def sentence(tokens: Iterable[Token]) -> str:
    """Tokens as a sentence: commas where they were, first letter large."""
    text = ""
    tokens = list(tokens)
    for place, token in enumerate(tokens):
        comma = token.comma and place + 1 < len(tokens)
        stop = token.ends_clause and place + 1 < len(tokens) and not comma
        written = token.joint and place + 1 < len(tokens) and tokens[place + 1].first <= token.last + 4
        word = f"{token.before}{token.text}{token.after}"
        text += word + ("," if comma or stop else "") + (token.joint if written else " ")
    text = re.sub(r"\bi\b(?=['’ ]|$)", "I", text).strip(" ,;")
    return text[:1].upper() + text[1:]


def says_little(tokens: Sequence[Token]) -> bool:
    """Whether the words need those before them to be understood (*do that*, *ask them*)."""
    content = [t for t in tokens if not t.person and any(w not in STOP for w in expand(t.text).split())]
    if any(t.low in _PRONOUN for t in tokens):
        return len(content) <= 1
    return len(content) == 0


def question_text(clause: Clause, span: tuple[int, int] | None) -> str:
    """A question as it was asked, with a question mark."""
    first, last = span or (0, len(clause.norm))
    tokens = list(without_opening(clause.between(first, last), _OPENING))[: MAX_ITEM_WORDS + 8]
    while len(tokens) > 3 and _opens_idly(tokens):
        tokens = tokens[1:]
    return sentence(tokens).rstrip("?.! ") + "?" if tokens else ""


def with_antecedent(text: str, antecedent: Sequence[Token]) -> str:
    """An item that needs the words before it: both, the matter first; the matter alone where that says all."""
    before = sentence(without_loose_end(_trim(list(antecedent))[:18]))
    if not before or not text:
        return before or text
    return f"{before}: {_inside(text)}"


def _inside(text: str, names: frozenset[str] = frozenset()) -> str:
    """A sentence as it goes on after a colon; names of people keep their capital."""
    opening = text.split(" ", 1)[0]
    word = opening.rstrip(",.:")
    person = word.removesuffix("'s").removesuffix("’s").lower()
    if person in names or opening.endswith(":"):
        return text
    kept = word in ("I", "I'll", "I'm") or word.lower() in _CAPITALS or not word[1:].islower()
    return text if (kept and len(word) > 1) or word == "I" else text[:1].lower() + text[1:]


_CAPITALS = words_in("""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december christmas easter
""")


def statement_tokens(clause: Clause) -> tuple[Token, ...]:
    """Words of a decision: all of the clause but what opens and closes a turn, and *I suggest* and the like."""
    tokens = list(without_opening(clause.tokens, _PROPOSING))
    while tokens and _opens_idly(tokens):
        tokens = tokens[1:]
    while tokens and _closes_idly(tokens, _CLOSERS):
        tokens = tokens[:-1]
    return tuple(without_loose_end(without_remark(tokens)[:MAX_ITEM_WORDS]))


_CLOSERS = words_in("okay then right yes yeah please sorry so and but mind alright ok")


def forget_made() -> None:
    """Forget what was kept of sentences, as a purged meeting's must be."""
    clean.cache_clear()
    _plainness.cache_clear()


@lru_cache(maxsize=8192)
def clean(text: str, limit: int = 30) -> str:
    """An utterance as sentences of the summary: fillers and asides out, at most ``limit`` words.

    Kept, since a summary that is made anew again and again weighs mostly what it weighed before.
    """
    written = text.split()
    if not in_english([w.casefold().strip('.,;:?!"()') for w in written]):
        # The words of other languages are nobody's fillers.
        return " ".join(written[:limit]) + (" …" if len(written) > limit else "")
    out: list[str] = []
    room = limit
    sentences = re.split(r"(?<=[.?!…])\s+", text)
    if len(words_of(text)) < sum(len(words_of(s)) for s in sentences):
        sentences = [text]  # a slip is put right in the next sentence
    for said in sentences:
        words = [t for clause in clauses_of(said) for t in clause.tokens]
        if words and _answers(words, out):
            out.append(sentence(words) + ".")
            room -= len(words)
            continue
        words = _without_greeting(words)
        if words:
            words = list(without_opening(without_opening(words, _OPENING), _PROPOSING))
        tokens = _trim(words)
        if len(tokens) < 4:
            continue
        if len(tokens) > room:
            if not out:
                out.append(sentence(tokens[:limit]) + " …")
            break
        out.append(sentence(tokens) + ("?" if said.rstrip().endswith("?") else "."))
        room -= len(tokens)
    if out:
        return " ".join(out)
    body = sentence([t for clause in clauses_of(text) for t in clause.tokens][:limit])
    return body + "." if body else ""


_GREETING = re.compile(
    r"(?:(?:oh|okay|right|well|and|so|yes|no|great) )*(?:thanks(?! to)|thank you|(?:cheers|hi|hey)(?= |$)(?! (?:cost|vest))|"
    r"hello|"
    r"(?:morning|welcome)(?= (?:all|everyone|everybody|back|to you|@)|$)|"
    r"good (?:morning|afternoon|evening)|good ?bye|bye|congratulations|happy birthday|you are welcome|"
    r"see you(?! (?:on )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday))|"
    r"loud and clear|(?:it is )?(?:nice|good|great|lovely) to (?:see|meet|have) you|how (?:are you|was your)|"
    r"(?:can|could) (?:you|everyone|everybody|you all) (?:all )?(?:hear|see) (?:me|us)|"
    r"(?:have|enjoy) (?:a|your|the) (?:nice |good |great |lovely )*(?:day|weekend|evening|holidays?))\b"
)
"""What opens greetings and thanks."""
_TALK_AFTER = 6
"""Words from which what follows a greeting is a sentence of the matter."""


def _without_greeting(words: list[Token]) -> list[Token]:
    """Words of a sentence without the greeting or thanks that open it; none where little more is said."""
    if not words or _GREETING.match(clause_of(tuple(words)).norm) is None:
        return words
    place = next((n for n, t in enumerate(words) if t.comma), None)
    rest = words if place is None else words[place + 1 :]
    least = _TALK_AFTER if place is not None else _TALK_AFTER + 4
    counted = any(t.low[:1].isdigit() or t.low in NUMBERS for t in rest)
    return rest if len(rest) >= least or (counted and len(rest) >= 4) else []


def _only_greets(text: str) -> bool:
    """Whether an utterance holds greetings, thanks and what is said beside them, and nothing more."""
    sentences = [[t for c in clauses_of(s) for t in c.tokens] for s in re.split(r"(?<=[.?!…])\s+", text)]
    left = [_without_greeting(words) for words in sentences if words]
    greets = any(not kept for kept in left)
    return greets and all(len(_trim(list(kept))) < 4 for kept in left)


def _answers(words: Sequence[Token], told: Sequence[str]) -> bool:
    """Whether a short sentence is an answer that what was told before it needs (*We take the bus. No.*)."""
    if not told or len(words) > 3:
        return False
    opened = expand(words[0].text).split()[0]
    denies = opened in ("no", "not", "never") or any(
        w == "not" for t in words for w in expand(t.text).split()
    )
    return denies or (opened == "yes" and told[-1].endswith("?"))


_MYSELF = re.compile(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e|[Mm]ine|[Mm]yself)\b")
_A_NAME = re.compile(r"[^\W\d_]{2}[^\d_]*")
"""What people are called, unlike the marks that machines give to voices."""


def _asks_for_a_day(telling: Telling) -> frozenset[str]:
    """Times and numbers in a question; none where it is no question."""
    return _times_in(telling.text) if "?" in telling.text else frozenset()


def _times_in(text: str) -> frozenset[str]:
    words = {w.strip(".,;:?!") for w in text.lower().split()}
    return frozenset(w for w in words if w in TIMES | NUMBERS or w[:1].isdigit())


def _put_right(telling: Telling, later: Iterable[tuple[int, str]]) -> bool:
    """Whether a question for a day or number got another one, on the same matter, in what was said or settled later."""
    asked = _asks_for_a_day(telling)
    if not asked:
        return False
    about = telling.stems - {stem(w) for w in asked} | {stem(w) for w in asked & _MONTHS}
    for index, text in later:
        said = _times_in(text)
        if index > telling.index and said - asked and about & stems(text.lower()):
            return True
    return False


def _changed(telling: Telling, items: Iterable[DraftItem]) -> bool:
    """Whether an item that an utterance is evidence of has another day or number than was said in it."""
    said = _times_in(telling.text)
    return bool(said) and any(
        (held := _times_in(i.text))
        and said - held
        and held - said
        and len(telling.stems & stems(i.text.lower()) - {stem(w) for w in held}) >= 1
        for i in items
        if any(q.utterance_id == telling.quote.utterance_id for q in i.evidence)
    )


_MONTHS = words_in("january february march april june july august september october november december")


def summary(state: State, context: MeetingContext, items: Sequence[DraftItem]) -> tuple[SummarySentence, ...]:
    """What the meeting was about, in its own words, at most 160 words.

    Decisions first, then who does what, then for each key topic (or item of the agenda) that was
    discussed and is not yet mentioned the best sentence said about it, then what else weighs most.
    What was taken back is left out, and so is what an item was made of. Empty only when nothing was
    said (or all of it was taken back). Where a model read along, only items more likely than not are
    told, and what was said has who said it before it.
    """
    by_model = state.memory is not None
    out: list[SummarySentence] = []
    used: set[str] = set()
    room = MAX_SUMMARY_WORDS

    def add(text: str, evidence: tuple[Quote, ...]) -> None:
        nonlocal room
        length = len(text.split())
        key = " ".join(sorted(stems(text.lower())))
        if text and length <= room and key not in used and evidence:
            used.add(key)
            out.append(SummarySentence(text, evidence))
            room -= length

    def sentence_of(telling: Telling) -> str:
        text = clean(telling.text, 26)
        if by_model and _called(telling.speaker, context) is not None:
            return _attributed(text, telling.speaker, context)
        who = _called(telling.speaker, context) or state.roster.of_speaker(telling.speaker)
        return f"{who}: {text}" if who and _A_NAME.fullmatch(who) and _MYSELF.search(text) else text

    undone = {
        p.quote.utterance_id for d in state.drafts if _no_longer(d) for p in d.evidence if p.weight >= 2
    }
    said = [t for t in (*state.told, *state.block) if t.quote.utterance_id not in undone]
    called = frozenset(
        w.lower() for n in (*(a.name for a in context.attendees), *state.speakers) for w in n.split()
    )
    live = [i for i in items if not i.withdrawn]
    place_of = {p.quote.utterance_id: p.index for d in state.drafts for p in d.evidence}
    later = [
        (place_of.get(i.evidence[-1].utterance_id, -1), i.text)
        for i in items
        if i.evidence and not i.withdrawn
    ]
    later += [(t.index, t.text) for t in said if "?" not in t.text]
    said = [
        t for t in said if not _only_greets(t.text) and not _put_right(t, later) and not _changed(t, live)
    ] or said
    likely = [i for i in items if not i.withdrawn and (not by_model or i.confidence >= _LIKELY)]
    settled = [i for i in likely if i.kind == "decision"]
    topics = [stems(t.lower()) for t in (context.key_topics or context.agenda)]
    for item in sorted(settled, key=lambda i: -i.confidence)[:5]:
        add(item.text.rstrip(".") + ".", item.evidence)
    tasks = [i for i in likely if i.kind == "action_item"]
    for item in sorted(tasks, key=lambda i: -i.confidence)[:MAX_SUMMARY_TASKS]:
        if room > MAX_SUMMARY_WORDS // 2:
            add(_task_sentence(item, context if by_model else None, called), item.evidence)
    shown = {q.utterance_id for s in out for q in s.evidence}
    shown |= {i.evidence[0].utterance_id for i in items if i.kind in ("open_question", "answered_question")}
    told = len(out)
    for topic in topics:
        if not topic or any(len(topic & stems(s.text.lower())) * 2 >= len(topic) for s in out):
            continue
        best = max(said, key=lambda t: (_about(topic, t), t.weight, -t.index), default=None)
        if best is not None and _about(topic, best) * 2 >= len(topic):
            add(sentence_of(best), (best.quote,))
    if by_model:
        most = max(_SHORT_SUMMARY, state.count // _TURNS_A_SENTENCE)
        for telling in _most_telling([t for t in said if t.quote.utterance_id not in shown], out, most):
            add(sentence_of(telling), (telling.quote,))
    frequency: dict[str, int] = {}
    for telling in said:
        for stem_ in telling.stems:
            frequency[stem_] = frequency.get(stem_, 0) + 1
    for telling in sorted(said, key=lambda t: (-_weight(t, frequency), t.index)):
        if len(out) >= max(4, told + 2, len(settled) + len(topics)):
            break
        if telling.quote.utterance_id in shown or (out and len(telling.stems) < 3):
            continue
        if not out or len(clean(telling.text, 26).split()) > 4:
            add(sentence_of(telling), (telling.quote,))
    if not out and said:
        add(sentence_of(said[0]), (said[0].quote,))
    place = {t.quote.utterance_id: t.index for t in said}
    return tuple(sorted(out, key=lambda s: place.get(s.evidence[0].utterance_id, -1)) if not settled else out)


def _no_longer(draft: Draft) -> bool:
    """Whether the words of an item are not what holds: taken back, refused, a joke, or put right later."""
    return draft.withdrawn or draft.mode == "refused" or not _NOT_TOLD.isdisjoint(draft.reasons)


_NOT_TOLD = frozenset(("date changed", "number changed", "only a joke", "tag_of_a_joke"))
_SHORT_SUMMARY = 2
_TURNS_A_SENTENCE = 25
"""A sentence of the summary for so many turns, besides decisions and tasks."""


def _most_telling(said: Sequence[Telling], out: Sequence[SummarySentence], most: int) -> tuple[Telling, ...]:
    """What the model finds worth telling, the best first; words that were told already count less."""
    covered = set().union(*(stems(s.text.lower()) for s in out)) if out else set()
    left = [t for t in said if t.weight >= _WORTH and len(t.stems) >= 3]
    count: dict[str, int] = {}
    for telling in said:
        for stem_ in telling.stems:
            count[stem_] = count.get(stem_, 0) + 1
    value = {t.index: t.weight * _common(t.stems, count) * _plainness(t.text) for t in left}
    chosen: list[Telling] = []
    # What an utterance is worth only falls as more is told: most are looked at once, not once a sentence.
    waiting = [(-2.0 * value[t.index], t.index, place) for place, t in enumerate(left)]
    heapify(waiting)
    while waiting and len(chosen) < most:
        known, index, place = waiting[0]
        best = left[place]
        fresh = len(best.stems - covered)
        worth = -value[index] * (1 + fresh / len(best.stems))
        if worth != known:
            heapreplace(waiting, (worth, index, place))
            continue
        heappop(waiting)
        if fresh >= 2:
            chosen.append(best)
            covered |= best.stems
    return tuple(chosen)


_WORTH = 0.8
"""Weight, four times the probability, from which the model finds an utterance worth telling."""


_LIKELY = 0.5
"""Confidence from which the summary of a meeting that a model read tells an item; all others stand in their lists."""


def _common(known: frozenset[str], count: dict[str, int]) -> float:
    """How much the words are those of the meeting's matter."""
    return sum(log(1 + count[s]) for s in known) / (len(known) + 3)


_WRITTEN = words_in("the a of to and in for on with be is will that which as by it")
_CHATTED = words_in("i you um uh yeah okay mm hmm i'm we're you're don't know like just well so my me")


@lru_cache(maxsize=8192)
def _plainness(text: str) -> float:
    """How much of what readers of a summary expect: whole phrases, little of what only talk has."""
    words = re.findall(r"[\w']+", text.lower())
    written, chatted = (sum(w in kind for w in words) / max(1, len(words)) for kind in (_WRITTEN, _CHATTED))
    return (0.3 + written) * (1 - chatted)


def _task_sentence(
    item: DraftItem, context: MeetingContext | None = None, names: frozenset[str] = frozenset()
) -> str:
    """Who does what, and by when in the words that were said."""
    when = f" ({item.due_text})" if item.due_text and item.due_text not in item.text else ""
    who = (_called(item.owner, context) if context is not None else None) or item.owner
    return f"{who or 'To do'}: {_inside(item.text, names).rstrip('.')}{when}."


def _attributed(text: str, speaker: str | None, context: MeetingContext) -> str:
    """What somebody said, after who it was; as it is where the list of attendees does not tell."""
    who = _called(speaker, context)
    return f"{who}: {text}" if who and text else text


def _called(who: str | None, context: MeetingContext) -> str | None:
    """An attendee's name; where it is no more than a mark (*PM*), the role."""
    attendee = next((a for a in context.attendees if who is not None and who in (a.speaker, a.name)), None)
    if attendee is None:
        return None
    mark = len(attendee.name) <= 3 and attendee.name.isupper()
    return f"The {attendee.role}" if mark and attendee.role else attendee.name


def _about(topic: frozenset[str], telling: Telling) -> int:
    return len(topic & telling.stems)


def _weight(telling: Telling, frequency: dict[str, int]) -> float:
    shared = sum(frequency[s] - 1 for s in telling.stems)
    return telling.weight + shared / (1 + len(telling.stems))


def told_as(
    sentence_: SummarySentence, item: DraftItem, text: str, owner: str | None, due_text: str | None
) -> SummarySentence | None:
    """A sentence made of an item, told as that stands after checks; None where it was made of something else."""
    if item.kind == "decision":
        same = (
            sentence_.text == item.text.rstrip(".") + "."
            and sentence_.evidence == item.evidence[: len(sentence_.evidence)]
        )
        return SummarySentence(text.rstrip(".") + ".", sentence_.evidence) if same else None
    if sentence_.evidence != item.evidence or item.text.rstrip(".").lower() not in sentence_.text.lower():
        return None
    who, _, rest = sentence_.text.partition(": ")
    if not rest:
        return None
    who = who if owner == item.owner else (owner or "To do")
    when = f" ({due_text})" if due_text and due_text not in text else ""
    return SummarySentence(f"{who}: {_inside(text).rstrip('.')}{when}.", sentence_.evidence)
