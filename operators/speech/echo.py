"""Whether one text is the echo of another: the same words, heard at the same time by another microphone."""

from rapidfuzz import fuzz

from models.speech_text import normalised

Span = tuple[int, int]

MANY_WORDS = 4


def is_echo(text: str, louder: str, span: Span, louder_span: Span, margin_db: float) -> bool:
    """Whether `text` repeats what the louder microphone heard.

    People do say the same thing at once ("yes"), so the weaker the text, the more the levels have to agree:
    `margin_db` is how clearly the sound was its speaker's own. Spans are (start, end) in ns of one clock.
    """
    words, louder_words = normalised(text), normalised(louder)
    if not words or not louder_words:
        return False
    overlap = min(span[1], louder_span[1]) - max(span[0], louder_span[0])
    if overlap < 0.5 * (span[1] - span[0]):
        return False
    said, said_louder = " ".join(words), " ".join(louder_words)
    alike = fuzz.ratio(said, said_louder)
    if len(words) >= MANY_WORDS and alike >= 90.0:
        # Nobody says a whole sentence in unison, whatever the levels are.
        return True
    if margin_db > (6.0 if len(words) <= 2 else 12.0):
        return False
    if alike >= 80.0:
        return True
    return (
        len(words) >= 3 and len(words) <= len(louder_words) and fuzz.partial_ratio(said, said_louder) >= 85.0
    )
