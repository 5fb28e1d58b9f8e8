"""The summary under the checks: every sentence rests on what was said, every key topic is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contracts.minutes import SummarySentence
from operators import compose
from operators.language.people import Roster
from operators.language.text import stems
from operators.plain_text import plain
from operators.understand.types import Quote, Spoken
from operators.understand.types import SummarySentence as DraftSentence
from operators.verify import claims
from operators.verify.claims import Said
from operators.verify.evidence import in_time, is_real, speech_evidence
from operators.verify.types import (
    Draft,
    SummaryVerdict,
)

_MAX_SENTENCE_WORDS: Final = 30


@dataclass(frozen=True, slots=True)
class RememberedSentence:
    """What became of a sentence of the summary, with what it depends on."""

    sentence: DraftSentence
    spoken: tuple[Spoken | None, ...]
    shown: SummarySentence | None
    action: str


def _verify_sentence(
    sentence: DraftSentence, draft: Draft, roster: Roster
) -> tuple[SummarySentence | None, str]:
    """A sentence as it may stand (None where it may not), and what was done about it."""
    quotes = tuple(q for q in dict.fromkeys(sentence.evidence) if is_real(q, draft.utterances))
    if not quotes:
        return None, "a sentence without evidence was dropped"
    spoken = [draft.utterances[q.utterance_id] for q in quotes]
    said = Said(
        tuple(plain(s.text[q.first : q.last]) for q, s in zip(quotes, spoken, strict=True)),
        tuple(s.speaker for s in spoken),
    )
    granted = [name for s in said.speakers if (name := roster.of_speaker(s))]
    text, action = plain(sentence.text), ""
    if not text or (
        claims.unsupported_numbers(text, said)
        or claims.unsupported_names(text, said, roster, granted)
        or claims.unsupported_dates(text, said, None)
    ):
        text, action = said.quotes[0], "a sentence was replaced by the words that were said"
    evidence = in_time(speech_evidence(q, draft.utterances, draft.zero_ns) for q in quotes)
    return SummarySentence(text=text, evidence=evidence), action


def _known_sentence(
    sentence: DraftSentence, draft: Draft, roster: Roster, remembered: dict[str, RememberedSentence]
) -> tuple[SummarySentence | None, str]:
    """As ``_verify_sentence``, from memory where nothing that it depends on has changed."""
    spoken = tuple([draft.utterances.get(q.utterance_id) for q in sentence.evidence])
    known = remembered.get(sentence.text)
    if (
        known is not None
        and known.sentence == sentence
        and len(spoken) == len(known.spoken)
        and all(a is b for a, b in zip(spoken, known.spoken, strict=True))
    ):
        return known.shown, known.action
    shown, action = _verify_sentence(sentence, draft, roster)
    remembered[sentence.text] = RememberedSentence(sentence, spoken, shown, action)
    return shown, action


def verify_summary(
    draft: Draft, roster: Roster, remembered: dict[str, RememberedSentence]
) -> tuple[tuple[SummarySentence, ...], SummaryVerdict, list[str]]:
    """Sentences in the order of the meeting, what was found, and notices for readers."""
    kept: list[SummarySentence] = []
    actions: list[str] = []
    for gone in remembered.keys() - {s.text for s in draft.summary} if draft.summary else ():
        del remembered[gone]
    for sentence in draft.summary:
        shown, action = _known_sentence(sentence, draft, roster, remembered)
        kept += [shown] if shown is not None else []
        actions += [action] if action else []
    checks = {"sentences_rest_on_evidence": not actions}
    notices: list[str] = []
    if draft.stage == "final":
        checks["key_topics_mentioned"] = True
        for topic in _topics_missing(draft, kept):
            checks["key_topics_mentioned"] = False
            offered = draft.topic_sentences.get(topic) or _topic_sentence(topic, draft)
            shown = _verify_sentence(offered, draft, roster)[0] if offered is not None else None
            if shown is not None:
                kept.append(shown)
                actions.append(f"a sentence on {plain(topic)} was added")
            else:
                notices.append(f"The key topic “{plain(topic)}” was discussed but is not in the summary.")
    kept.sort(key=lambda s: (s.evidence[0].start_s, s.text))
    return tuple(kept), SummaryVerdict(tuple(checks.items()), tuple(dict.fromkeys(actions))), notices


def _topics_missing(draft: Draft, summary: Sequence[SummarySentence]) -> list[str]:
    """Key topics of which all words fell in one utterance but fewer than half stand in the summary."""
    mentioned = frozenset().union(*(stems(s.text.casefold()) for s in summary)) if summary else frozenset()
    missing: list[str] = []
    spoken: list[frozenset[str]] | None = None
    for topic in dict.fromkeys(draft.context.key_topics):
        wanted = stems(topic.casefold())
        if not wanted or len(wanted & mentioned) * 2 >= len(wanted):
            continue
        if spoken is None:
            spoken = [stems(u.text.casefold()) for u in draft.utterances.values()]
        if any(wanted <= said for said in spoken):
            missing.append(topic)
    return missing


def _topic_sentence(topic: str, draft: Draft) -> DraftSentence | None:
    """The utterance of a sentence's length that says most about a topic; None where there is none."""
    wanted = stems(topic.casefold())
    fitting = [
        (len(stems(u.text.casefold())), -u.start_ns, u.id)
        for u in draft.utterances.values()
        if 4 <= len(u.text.split()) <= _MAX_SENTENCE_WORDS and wanted <= stems(u.text.casefold())
    ]
    if not fitting:
        return None
    spoken = draft.utterances[max(fitting)[2]]
    return DraftSentence(compose.clean(spoken.text), (Quote(spoken.id, 0, len(spoken.text)),))
