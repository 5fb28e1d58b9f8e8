"""What the weights see of a sound: Whisper's log mel spectrogram, and how loud the sound is."""

from typing import Final

import numpy as np
import numpy.typing as npt

SAMPLE_RATE_HZ: Final = 16_000
"""The only rate the weights understand."""

HOP_SAMPLES: Final = 160
"""One feature frame: 10 ms."""

_MEL_BLOCK: Final = 16

Samples = npt.NDArray[np.float32]


def log_mel(samples: Samples, mel_filters: npt.NDArray[np.float32], frames: int) -> npt.NDArray[np.float32]:
    """Whisper's features, shape (bands, frames), of samples followed by silence up to `frames`.

    The silence is not transformed: its value is known, so the cost follows the samples. As in Whisper's reference
    preprocessing: periodic Hann window of 400 samples, hop 160, reflected edges, power spectrum, log10 limited to
    8 below the maximum.
    """
    fft_length = 400
    padded = np.pad(samples, (0, max(0, frames * HOP_SAMPLES - len(samples))))
    spoken = min(frames, (len(samples) + fft_length // 2) // HOP_SAMPLES + 1)
    padded = np.pad(padded, fft_length // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, fft_length)[::HOP_SAMPLES][:spoken]
    hann = np.hanning(fft_length + 1)[:-1].astype(np.float32)
    spectrum = np.fft.rfft(windows * hann, axis=1)
    power = np.square(spectrum.real) + np.square(spectrum.imag)
    # In blocks so small that the linear algebra library sees no reason to start threads of its own: they would
    # take the cores from the recogniser's workers and wait for each other.
    blocks = np.zeros((-(-spoken // _MEL_BLOCK), _MEL_BLOCK, power.shape[1]), dtype=np.float32)
    blocks.reshape(-1, power.shape[1])[:spoken] = power
    mel = (blocks @ mel_filters.T).reshape(-1, mel_filters.shape[0])[:spoken]
    loudness = np.full((mel_filters.shape[0], frames), -10.0, dtype=np.float32)
    loudness[:, :spoken] = np.log10(np.maximum(mel, 1e-10)).T
    np.maximum(loudness, loudness.max() - 8.0, out=loudness)
    return (loudness + 4.0) / 4.0


def level_dbfs(samples: Samples) -> float:
    """Level of the loudest tenth of a piece in dB below full scale: speech has pauses, noise has none."""
    block = HOP_SAMPLES * 2
    whole = len(samples) // block * block
    if whole == 0:
        return -120.0
    powers = np.sort(np.mean(np.square(samples[:whole].reshape(-1, block)), axis=1))
    loudest = powers[-max(1, len(powers) // 10) :]
    return float(10.0 * np.log10(np.mean(loudest) + 1e-12))
