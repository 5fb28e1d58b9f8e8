"""Whether an utterance is English, by the small words that no sentence of a language can do without."""

from __future__ import annotations

from collections.abc import Sequence

from operators.language.words import words_in

_ENGLISH = words_in("""
    the of and to in is you that it he was for on are with as i his they be at this have from or had by but not what all
    were we when your can said there use an each which she do how their if will up other about out many then them these
    so some her would make like him into has more go no way could my than been who its now did get may okay yes yeah
    i'll i'm it's that's don't we'll we're you're just well right let's let me our us should shall any a
""")
_OTHERS = words_in("""
    der die das und ich ist nicht ein eine einen den dem des mit auf für wir sie es zu von auch wird werden habe haben
    kann noch nur dann aber oder wenn bei nach aus über bis wie wer gut machen müssen muss uns ihr mich dich sich schon
    le la les un une des et est pas que qui je nous vous il elle ils sont avec pour dans sur ce cette mais ou où du au aux
    avons ont j'ai c'est d'accord va vais oui très bien fait faire tout
    el los las una y es no que en por con para como pero más su del al lo se yo tú él nosotros está están hemos vamos voy
    a muy bien sí hay tiene hacer hasta
    di il gli che non sono con per una come più abbiamo ho è anche del della questo
    het een van ik niet is en dat wij zij voor met op ook nog maar wordt moet moeten wel
    uma não os é para com mais você nós ele ela foi ser tem vai
""") - _ENGLISH  # fmt: skip
_LATIN = "\u024f"
"""The last letter of the scripts in which English can be written."""
_LETTERS = frozenset("ñßäöüãõêèàâîôûœøåçąęłśżćńčšžěř")
_LEAST_WORDS = 3


def in_english(words: Sequence[str]) -> bool:
    """Whether words (lower case) may be English; of very few words nobody can tell, and they are taken for it."""
    letters = "".join(words)
    strange = sum(sign > _LATIN and sign.isalpha() for sign in letters)
    if strange * 2 > len(letters):
        return False
    if len(words) < _LEAST_WORDS:
        return True
    ours = sum(w in _ENGLISH for w in words)
    theirs = sum(w in _OTHERS or not _LETTERS.isdisjoint(w) for w in words)
    return theirs < 2 or theirs <= ours
