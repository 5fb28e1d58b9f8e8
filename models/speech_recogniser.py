"""Speech recognition of one short piece of sound with faster-whisper weights on CTranslate2.

Whisper was trained on 30 s of input, and the usual front ends pad every utterance to that. Most of the encoder's
time is then spent on silence. Here the encoder gets the utterance and a little silence only (`context_s`), which
gives the same text for a fraction of the time, as long as a few seconds remain.

Everything is deterministic: greedy search first, and a second, wider search only when the first result shows that
it ran into a loop. No sampling, so the text of a piece is a function of its samples, of what was heard just before
where the caller gives that, and of the hotwords.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from models.speech_context import TOKEN_S, Before, Lead, lead_of
from models.speech_features import HOP_SAMPLES, SAMPLE_RATE_HZ, Samples, log_mel
from models.speech_hotwords import Word, first_doubt, reconcile
from models.speech_reading import Hypothesis, Recognition, better, hardly, judge, says_again, surer
from models.speech_text import (
    CLEAR_VOICE,
    FEW_WORDS,
    compression_ratio,
    degenerate,
    murmured,
    normalised,
    shorten_drawl,
)
from models.speech_times import join_parts, jump_times
from models.speech_weights import ModelError, load_weights, model_folder, tokenizer_of

_END_S = 0.1
"""How near a time stamp must come to the end of the sound to mean it."""

_LONGEST_MURMUR_S = 1.5

_MURMURS = " Mm-hm. Hm. Yes. Okay. Right."
"""Given as what was written before: the weights know murmurs, but seldom saw them written down."""

_LEAST_MURMUR_LOG_PROBABILITY = -1.0


@dataclass(frozen=True)
class RecogniserSettings:
    """What to load and how to search.

    `model` is empty for the bundled tiny.en, a folder with CTranslate2 weights, or the name of a faster-whisper
    model that already lies in the local cache. Nothing is ever downloaded.
    """

    model: str = ""
    language: str = "en"
    device: str = "cpu"
    compute_type: str = "int8"
    cpu_threads: int = 1
    workers: int = 1
    min_context_s: float = 9.0
    silence_after_s: float = 2.0
    beam_size: int = 1
    retry_beam_size: int = 5
    max_hotword_tokens: int = 60

    def __post_init__(self) -> None:
        if self.min_context_s < 4.0:
            raise ValueError("min_context_s below 4: with less context the weights repeat themselves")
        if self.cpu_threads < 1 or self.workers < 1:
            raise ValueError("cpu_threads and workers must be at least 1")


class SpeechRecogniser:
    """Loaded weights. Several threads may call `recognise` at once, up to `workers` run side by side."""

    def __init__(self, settings: RecogniserSettings) -> None:
        """Load the weights.

        Raises:
            ModelError: the weights are not there or cannot be read.
        """
        self.settings = settings
        self.folder = model_folder(settings.model)
        whisper = load_weights(
            self.folder,
            device=settings.device,
            compute_type=settings.compute_type,
            cpu_threads=settings.cpu_threads,
            workers=settings.workers,
        )
        self._model: Any = whisper.model
        self._mel_filters: npt.NDArray[np.float32] = np.ascontiguousarray(
            whisper.feature_extractor.mel_filters, dtype=np.float32
        )
        self._tokenizer: Any = tokenizer_of(whisper, settings.language)
        self._suppress: list[int] = [-1]

    @property
    def name(self) -> str:
        """Short name for the versions that minutes carry."""
        return self.settings.model or "tiny.en"

    def ordinary_words(self) -> frozenset[str]:
        """Common words, lower case: those that the vocabulary holds in one piece without a capital."""
        vocabulary = self._tokenizer.tokenizer.get_vocab()
        # "Ġ" stands for the blank before a word.
        return frozenset(
            token[1:]
            for token in vocabulary
            if token[:1] == "Ġ" and token[1:].isalpha() and token[1:].islower()
        )

    def warm_up(self) -> None:
        """Run once on quiet noise, so that the first real piece does not pay for allocations."""
        noise = np.random.default_rng(0).standard_normal(SAMPLE_RATE_HZ).astype(np.float32) * 1e-3
        self.recognise(noise)

    def recognise(
        self,
        samples: Samples,
        *,
        hotwords: tuple[str, ...] = (),
        word_times: bool = True,
        before: Before | None = None,
        voice: float = 0.0,
        thorough: bool = True,
    ) -> Recognition:
        """Recognise one piece.

        Args:
            samples: float32 in -1..1, mono, 16 kHz, shape (n,), at most 30 s.
            hotwords: names and terms that may be spoken.
            word_times: align words with the sound (about a tenth of the pass). Without it they are spread evenly.
            before: what was heard just before; the text is that of the piece alone.
            voice: mean speech probability of its voiced frames. A short piece of clear voice in which hardly a
                word is heard is listened to once more, for a murmur only.
            thorough: listen a second time where that may change a word: to names that are doubtful, to a word or two
                after other speech, to murmurs. Loops are searched anew in any case.

        Raises:
            ValueError: wrong shape, or longer than 30 s.
        """
        if samples.ndim != 1:
            raise ValueError(f"expected mono samples of shape (n,), got {samples.shape}")
        duration_s = len(samples) / SAMPLE_RATE_HZ
        if duration_s > 30.0:
            raise ValueError(f"a piece may have 30 s at most, got {duration_s:.1f} s")
        if len(samples) < HOP_SAMPLES * 4:
            return Recognition(text="", suppressed="too short")
        found = self._after(samples, before, hotwords, word_times, voice, thorough)
        if not thorough:
            return replace(found, hurried=True)
        if not word_times or voice < CLEAR_VOICE or duration_s > _LONGEST_MURMUR_S or not hardly(found):
            return found
        return self._murmur(samples) or found

    def features(self, samples: Samples) -> npt.NDArray[np.float32]:
        """Log mel spectrogram, shape (mel bands, frames), of the samples followed by silence."""
        context_s = max(
            self.settings.min_context_s, len(samples) / SAMPLE_RATE_HZ + self.settings.silence_after_s
        )
        frames = 2 * math.ceil(min(context_s, 30.0) * SAMPLE_RATE_HZ / HOP_SAMPLES / 2)
        return log_mel(samples, self._mel_filters, frames)

    def _after(
        self,
        samples: Samples,
        before: Before | None,
        hotwords: tuple[str, ...],
        word_times: bool,
        voice: float,
        thorough: bool,
    ) -> Recognition:
        """Read a piece after what was heard before it, and a word or two alone as well."""
        if before is None:
            return self._read(samples, None, hotwords, word_times, voice, thorough)
        duration_s = len(samples) / SAMPLE_RATE_HZ
        room_s = self.settings.min_context_s - self.settings.silence_after_s - duration_s
        lead = lead_of(before, duration_s, room_s, self._tokenizer)
        found = self._read(samples, lead, hotwords, word_times, voice, thorough)
        again = says_again(before.words, found.words)
        if lead is None or not thorough or (len(normalised(found.text)) > FEW_WORDS and not again):
            return found
        alone = self._read(samples, None, hotwords, word_times, voice)
        if again and alone.words:
            return replace(alone, passes=found.passes + alone.passes)
        return replace(surer(found, alone), passes=found.passes + alone.passes)

    def _read(
        self,
        samples: Samples,
        lead: Lead | None,
        hotwords: tuple[str, ...],
        word_times: bool,
        voice: float,
        thorough: bool = True,
    ) -> Recognition:
        """Search, look again where the first search cannot be trusted, and judge what was found."""
        settings = self.settings
        duration_s = len(samples) / SAMPLE_RATE_HZ
        sound = samples if lead is None else np.concatenate((lead.samples, samples))
        encoded = self._model.encode(_view(self.features(sound)), to_cpu=False)
        found = self._generate(encoded, duration_s, lead, self._hotword_prompt(hotwords), settings.beam_size)
        passes = 1
        if lead is not None and degenerate(found.text, duration_s):
            return Recognition(text="", raw_text=found.text, suppressed="loop")
        if degenerate(found.text, duration_s):
            # Hotwords are the commonest cause of a loop, so the second search goes without them; forbidding long
            # repeats breaks loops that the sound itself provokes.
            other = self._generate(
                encoded, duration_s, None, [], settings.retry_beam_size, no_repeat_ngram_size=5
            )
            found, hotwords, passes = better(found, other, duration_s), (), 2
        elif hotwords and lead is None and not normalised(found.text):
            # Names that may come can keep the decoder from hearing a murmur at all.
            found, hotwords, passes = self._generate(encoded, duration_s, None, [], settings.beam_size), (), 2
        words, boundary_ms = self._words(encoded, found, duration_s, lead, word_times)
        doubt = first_doubt(words, hotwords) if word_times and thorough and hotwords else None
        if doubt is not None:
            # What stands before the first doubt needs no second search.
            sure = self._until_word(found, doubt)
            plain = self._generate(encoded, duration_s, lead, [], settings.beam_size, written=sure)
            passes += 1
            if not degenerate(plain.text, duration_s):
                plain_words, _ = self._words(encoded, plain, duration_s, lead, word_times)
                words = reconcile(words, plain_words, hotwords)
        return judge(found, words, boundary_ms, samples, passes, voice)

    def _murmur(self, samples: Samples) -> Recognition | None:
        """What is murmured in a piece, None where it is no murmur."""
        duration_s = len(samples) / SAMPLE_RATE_HZ
        encoded = self._model.encode(_view(self.features(samples)), to_cpu=False)
        prompt = [self._tokenizer.sot_prev, *self._tokenizer.encode(_MURMURS)]
        found = self._generate(encoded, duration_s, None, prompt, self.settings.beam_size)
        if not murmured(found.text) or found.average_log_probability < _LEAST_MURMUR_LOG_PROBABILITY:
            return None
        words, boundary_ms = self._words(encoded, found, duration_s, None, True)
        # What follows the first is the prompt's rhythm going on.
        word = replace(words[0], text=shorten_drawl(words[0].text))
        return Recognition(
            text=word.text,
            words=(word,),
            no_speech_probability=found.no_speech_probability,
            average_log_probability=found.average_log_probability,
            compression_ratio=compression_ratio(word.text),
            raw_text=found.text,
            boundary_ms=boundary_ms,
            passes=2,
        )

    def _generate(
        self,
        encoded: Any,
        duration_s: float,
        lead: Lead | None,
        hotword_prompt: list[int],
        beam_size: int,
        no_repeat_ngram_size: int = 0,
        written: tuple[int, ...] = (),
    ) -> Hypothesis:
        # Time stamps between the words are thrown away, but with them the decoder keeps track of where it is in
        # the sound: it stops at its end, where without them it starts over.
        tokenizer = self._tokenizer
        earlier: tuple[int, ...] = () if lead is None else lead.tokens
        prompt = [*hotword_prompt, *tokenizer.sot_sequence, *earlier, *written]
        # More tokens than talkers reach are a loop, and loops are what makes a pass slow. The library halves the
        # length, and counts in it what was written before. After a text with time stamps more of them come.
        longest = 16 + math.ceil(9.0 * duration_s)
        if earlier or written:
            longest = len(prompt) + 2 * (12 + math.ceil(7.0 * duration_s))
        result = self._model.generate(
            encoded,
            [prompt],
            beam_size=beam_size,
            no_repeat_ngram_size=no_repeat_ngram_size,
            max_length=min(448, len(prompt) + longest),
            # Within a recording the next words may begin at any time.
            max_initial_timestamp_index=50 if lead is None else 1500,
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=self._suppress,
        )[0]
        end_s = duration_s if lead is None else lead.duration_s + duration_s
        found = self._within(result.sequences_ids[0][len(earlier) :], end_s)
        tokens = tuple(token for token in found if token < tokenizer.eot)
        return Hypothesis(
            tokens=tokens,
            written=found,
            text=tokenizer.decode(list(tokens)).strip(),
            no_speech_probability=float(result.no_speech_prob),
            average_log_probability=float(result.scores[0]),
        )

    def _within(self, tokens: list[int], end_s: float) -> tuple[int, ...]:
        """Tokens up to the first time stamp at the end of the sound: what follows it is said of no sound."""
        end = self._tokenizer.timestamp_begin + math.floor((end_s - _END_S) / TOKEN_S)
        text = False
        for place, token in enumerate(tokens):
            if token >= end and text:
                return tuple(tokens[:place])
            text = text or token < self._tokenizer.eot
        return tuple(tokens)

    def _until_word(self, found: Hypothesis, place: int) -> tuple[int, ...]:
        """What was written before a word, with its time stamps; empty before the first."""
        _, groups = self._split(found.tokens)
        left = sum(len(group) for group in groups[:place])
        if not left:
            return ()
        for end, token in enumerate(found.written):
            if token < self._tokenizer.eot:
                if not left:
                    return found.written[:end]
                left -= 1
        return found.written

    def _split(self, tokens: tuple[int, ...]) -> tuple[list[str], list[list[int]]]:
        """Words and the tokens of each."""
        texts, groups = self._tokenizer.split_to_word_tokens([*tokens, self._tokenizer.eot])
        return join_parts(texts[:-1], groups[:-1])

    def _hotword_prompt(self, hotwords: tuple[str, ...]) -> list[int]:
        if not hotwords:
            return []
        tokens: list[int] = []
        for word in hotwords:
            # Whole words only: half a name at the end of the prompt is continued by the decoder as speech.
            added = self._tokenizer.encode((" " if not tokens else ", ") + word.strip())
            if len(tokens) + len(added) > self.settings.max_hotword_tokens:
                break
            tokens.extend(added)
        return [self._tokenizer.sot_prev, *tokens, *self._tokenizer.encode(".")] if tokens else []

    def _words(
        self, encoded: Any, hypothesis: Hypothesis, duration_s: float, lead: Lead | None, aligned: bool
    ) -> tuple[tuple[Word, ...], float]:
        """Words with times, and how sharply their edges are known in ms."""
        if not hypothesis.tokens:
            return (), 0.0
        texts, groups = self._split(hypothesis.tokens)
        if not groups:
            return (), 0.0
        edges = np.cumsum([0, *(len(group) for group in groups)])
        if not aligned:
            # Tokens are spread evenly over the piece; half its length is the honest bound.
            scale = duration_s / max(1, int(edges[-1]))
            spread = tuple(
                Word(float(edges[i] * scale), float(edges[i + 1] * scale), texts[i], 1.0)
                for i in range(len(texts))
            )
            return spread, 500.0 * duration_s
        start_s = 0.0 if lead is None else lead.duration_s
        earlier = () if lead is None else lead.tokens[1:-1]
        edges += len(earlier)
        frames = math.ceil((start_s + duration_s) / TOKEN_S)
        found = self._model.align(
            encoded,
            self._tokenizer.sot_sequence,
            [[*earlier, *hypothesis.tokens]],
            2 * frames,
            median_filter_width=7,
        )[0]
        # A word that the earlier piece missed at its end may come now; it is put at the start of this one.
        times = np.maximum(jump_times(found.alignments, int(edges[-1]), start_s + duration_s) - start_s, 0.0)
        probabilities = np.asarray(found.text_token_probs, dtype=np.float64)
        words = tuple(
            Word(
                start_s=float(times[edges[i]]),
                end_s=float(max(times[edges[i + 1]], times[edges[i]])),
                text=texts[i],
                probability=float(probabilities[edges[i] : edges[i + 1]].mean()),
            )
            for i in range(len(texts))
        )
        return words, 100.0


def _view(features: npt.NDArray[np.float32]) -> Any:
    import ctranslate2

    return ctranslate2.StorageView.from_array(np.ascontiguousarray(features[None], dtype=np.float32))


__all__ = [
    "SAMPLE_RATE_HZ",
    "Before",
    "ModelError",
    "RecogniserSettings",
    "Recognition",
    "SpeechRecogniser",
    "Word",
    "log_mel",
    "model_folder",
]
