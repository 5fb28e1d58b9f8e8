"""The calibration signal for people: a page that any browser plays, and a film for whatever plays films.

Both show black and white and sound the tone of ``contracts/pulse_train.py`` twice within a minute. The second
time, three quarters of a minute later, shows whether a clock runs fast or slow.
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

import av
import numpy as np
import numpy.typing as npt

from contracts.pulse_train import CHIRP_FROM_HZ, CHIRP_S, CHIRP_TO_HZ, ON_S, PULSES_S

from .streams import InputError

TRAINS_S: Final = (3.0, 47.0)
"""When the train of pulses begins, in seconds from the start of page or film."""
LENGTH_S: Final = 59.0
RATE_HZ: Final = 48_000
_WIDTH: Final = 640
_HEIGHT: Final = 360
_TICKS: Final = 1000
"""Time base of the film's pictures: lights go on and off at their own millisecond, not at a picture rate."""
_STILL_MS: Final = 100
_LEVEL: Final = 0.5
_BLOCK: Final = 1024

Samples = npt.NDArray[np.float32]


def pulse_times_s() -> tuple[float, ...]:
    """Starts of all pulses, in seconds from the start."""
    return tuple(round(train + pulse, 6) for train in TRAINS_S for pulse in PULSES_S)


def chirp_samples(rate_hz: int) -> Samples:
    """The tone of one pulse with soft ends, shape (samples,), full scale 1."""
    time = np.arange(round(CHIRP_S * rate_hz)) / rate_hz
    sweep = 0.5 * (CHIRP_TO_HZ - CHIRP_FROM_HZ) / CHIRP_S
    tone: Samples = (
        np.sin(2 * np.pi * (CHIRP_FROM_HZ * time + sweep * time**2)) * np.sqrt(np.hanning(len(time)))
    ).astype(np.float32)
    return tone


def signal_samples(rate_hz: int = RATE_HZ) -> Samples:
    """The sound of the whole signal, shape (samples,), full scale 1."""
    out = np.zeros(round(LENGTH_S * rate_hz), np.float32)
    tone = _LEVEL * chirp_samples(rate_hz)
    for at_s in pulse_times_s():
        begin = round(at_s * rate_hz)
        out[begin : begin + len(tone)] += tone
    return out


def write_film(path: Path) -> None:
    """The signal as an MP4 of H.264 and AAC.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        with av.open(str(path), "w", format="mp4") as container:
            video = container.add_stream("libx264", rate=30)
            video.width, video.height, video.pix_fmt = _WIDTH, _HEIGHT, "yuv420p"
            video.time_base = video.codec_context.time_base = Fraction(1, _TICKS)
            video.codec_context.max_b_frames = 0
            video.codec_context.gop_size = 10
            video.codec_context.options = {"preset": "ultrafast", "crf": "28"}
            sound = container.add_stream("aac", rate=RATE_HZ)
            sound.layout = "mono"
            for frame in _pictures():
                container.mux(video.encode(frame))
            container.mux(video.encode(None))
            samples = signal_samples()
            for begin in range(0, len(samples), _BLOCK):
                block = av.AudioFrame.from_ndarray(samples[None, begin : begin + _BLOCK], "fltp", "mono")
                block.sample_rate, block.pts, block.time_base = RATE_HZ, begin, Fraction(1, RATE_HZ)
                container.mux(sound.encode(block))
            container.mux(sound.encode(None))
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror or error}") from error


def _pictures() -> Iterator[av.VideoFrame]:
    """A picture at every change of the light, and about ten a second between."""
    changes: dict[int, bool] = {}
    for at_s in pulse_times_s():
        changes |= {round(at_s * _TICKS): True, round((at_s + ON_S) * _TICKS): False}
    lit = False
    at = {*changes, *range(0, round(LENGTH_S * _TICKS), _STILL_MS)}
    shown = {on: np.full((_HEIGHT * 3 // 2, _WIDTH), 128, np.uint8) for on in (False, True)}
    for on, planes in shown.items():
        planes[:_HEIGHT] = 235 if on else 16
    for tick in sorted(at):
        lit = changes.get(tick, lit)
        frame = av.VideoFrame.from_ndarray(shown[lit], "yuv420p")
        frame.pts, frame.time_base = tick, Fraction(1, _TICKS)
        yield frame


def page() -> str:
    """The signal as one self-contained HTML page."""
    data = {
        "pulses": pulse_times_s(), "on": ON_S, "chirp": CHIRP_S, "from": CHIRP_FROM_HZ, "to": CHIRP_TO_HZ,
        "length": LENGTH_S,
    }  # fmt: skip
    return _PAGE.replace("DATA", json.dumps(data))


_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Calibrate the room</title>
<style>
 html, body { margin: 0; height: 100%; background: #000; color: #aaa; font: 20px/1.5 sans-serif }
 #text { max-width: 34em; margin: auto; padding: 2em 1em }
 button { font: inherit; padding: .5em 1.5em }
</style>
<div id="text">
<h1>Calibrate the room</h1>
<ol>
<li>Start the recording, or the publishers of the room's devices.</li>
<li>Show this page where every camera sees it and every microphone hears it. Brightness and volume up;
 loudspeaker at the screen, by cable, not by Bluetooth. Let the slide input show it too.</li>
<li>Press the button. White light flashes with short tones for one minute: look away if that is bad for you.</li>
<li>Run <code>minuted calibrate</code> on the recording, or with <code>--meeting</code> while the devices send.</li>
</ol>
<button id="go">Start</button>
</div>
<script>
const D = DATA;
document.getElementById("go").onclick = async () => {
  const text = document.getElementById("text"), body = document.body;
  const audio = new AudioContext({latencyHint: "interactive"});
  await audio.resume();
  if (body.requestFullscreen) { try { await body.requestFullscreen(); } catch (refused) { /* plays in the window */ } }
  text.style.display = "none";
  const tone = audio.createBuffer(1, Math.round(D.chirp * audio.sampleRate), audio.sampleRate);
  const samples = tone.getChannelData(0), sweep = (D.to - D.from) / D.chirp / 2;
  for (let i = 0; i < samples.length; i++) {
    const t = i / audio.sampleRate, edge = Math.sin(Math.PI * i / (samples.length - 1));
    samples[i] = 0.7 * edge * Math.sin(2 * Math.PI * (D.from * t + sweep * t * t));
  }
  const begin = audio.currentTime + 0.5;
  for (const at of D.pulses) {
    const source = audio.createBufferSource();
    source.buffer = tone; source.connect(audio.destination); source.start(begin + at);
  }
  const late = audio.outputLatency || audio.baseLatency || 0;
  const draw = () => {
    // A frame is seen about one refresh after it is drawn, the sound leaves the loudspeaker after its latency; and
    // half a refresh, so that the light is as often early as late.
    const now = audio.currentTime - late + 1.5 / 60 - begin;
    const lit = D.pulses.some(at => at <= now && now < at + D.on);
    body.style.background = lit ? "#fff" : "#000";
    if (now < D.length) { requestAnimationFrame(draw); return; }
    body.style.background = "#000"; text.style.display = "";
    if (document.fullscreenElement) document.exitFullscreen();
  };
  requestAnimationFrame(draw);
};
</script>
</html>
"""
