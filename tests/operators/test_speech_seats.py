"""Whose voice a frame is, told from levels alone: echoes of the room, gains that are not known yet, short words."""

from operators.speech.seats import Level, Seats, SeatSettings
from operators.speech.stream import FRAME_NS

FLOOR_DB = -63.0
OWN_DB, LEAK_DB = -42.0, -18.0


class Table:
    """Two microphones, frame by frame."""

    def __init__(self) -> None:
        self.seats = Seats(SeatSettings())
        self.number = 0

    def hear(self, **levels_db: float) -> dict[str, float | None]:
        """One frame; the margin at each microphone. What is above -60 dB sounds like speech."""
        frames = {
            name: Level(self.number * FRAME_NS, level_db, 0.9 if level_db > -60.0 else 0.1)
            for name, level_db in levels_db.items()
        }
        self.number += 1
        for name, level in frames.items():
            self.seats.add(name, level)
        return {name: self.seats.margin_db(name, level) for name, level in frames.items()}

    def leaks(self, name: str, voiced: list[Level]) -> bool:
        return self.seats.is_leak(name, voiced, self.number * FRAME_NS)

    def quiet(self, frames: int = 40) -> None:
        for _ in range(frames):
            self.hear(anna=FLOOR_DB, ben=FLOOR_DB)

    def anna(self, frames: int = 60) -> None:
        for _ in range(frames):
            self.hear(anna=OWN_DB, ben=OWN_DB + LEAK_DB)


def test_the_echo_of_the_room_is_not_the_neighbours_voice() -> None:
    """After Anna has spoken both microphones hear the room alike, too softly to pass for a voice at either."""
    table = Table()
    table.quiet()
    table.anna()
    for level_db in (-57.0, -58.0, -59.0):
        margins = table.hear(anna=level_db, ben=level_db)
        assert margins["ben"] is not None
        assert margins["ben"] < SeatSettings().own_above_db
    # Later on the same level at Ben's microphone alone is somebody speaking softly into it.
    table.quiet()
    assert table.hear(anna=FLOOR_DB, ben=-58.0)["ben"] == 40.0


def test_a_neighbour_whose_level_is_not_known_yet_does_not_pass_for_the_first_talker() -> None:
    table = Table()
    table.quiet()
    table.anna(120)
    table.quiet(12)
    for _ in range(10):
        margins = table.hear(anna=OWN_DB + LEAK_DB, ben=OWN_DB)
        assert margins["ben"] is not None
        assert margins["ben"] > SeatSettings().own_above_db
        assert margins["anna"] is None or margins["anna"] < SeatSettings().own_above_db


def test_both_are_kept_who_speak_at_once_though_only_one_has_been_heard_alone() -> None:
    table = Table()
    table.quiet()
    table.anna(120)
    table.quiet(12)
    for _ in range(5):
        margins = table.hear(anna=OWN_DB - 6.0, ben=OWN_DB)
    assert margins["ben"] is not None
    assert margins["ben"] > SeatSettings().own_above_db
    assert margins["anna"] is not None
    assert margins["anna"] > SeatSettings().own_above_db


def test_a_few_faint_frames_under_anothers_speech_are_a_leak_and_a_clear_word_is_none() -> None:
    table = Table()
    table.quiet()
    table.anna()
    start = table.number
    table.anna(6)
    faint = [Level((start + n) * FRAME_NS, OWN_DB + LEAK_DB, 0.9) for n in range(6)]
    clear = [Level((start + n) * FRAME_NS, OWN_DB, 0.9) for n in range(6)]
    assert table.leaks("ben", faint)
    assert not table.leaks("ben", clear)
    assert not table.leaks("anna", clear)
    assert not table.leaks("ben", faint * 4), "a long piece is judged frame by frame"
    assert not table.leaks("ben", [])


def test_what_is_overheard_while_packets_are_lost_at_the_start_of_anothers_speech_is_a_leak() -> None:
    """Filled with silence or missing at all: what came of Anna's voice just after tells whose it was."""
    for filled in (True, False):
        table = Table()
        table.quiet()
        table.anna()
        table.quiet()
        start = table.number
        for _ in range(6):
            table.hear(ben=OWN_DB + LEAK_DB, **({"anna": -120.0} if filled else {}))
        faint = [Level((start + n) * FRAME_NS, OWN_DB + LEAK_DB, 0.9) for n in range(6)]
        clear = [Level((start + n) * FRAME_NS, OWN_DB, 0.9) for n in range(6)]
        before_ns = (table.number - 1) * FRAME_NS
        table.anna(10)
        assert table.leaks("ben", faint), filled
        assert not table.seats.is_leak("ben", faint, before_ns), "not before that is decided"
        assert not table.leaks("ben", clear)
        assert table.leaks("ben", faint * 4), "a longer piece, too"
        assert not table.leaks("ben", faint * 5)
        # In a room of which everything came, what is said just before somebody else speaks is not theirs.
        table.quiet()
        start = table.number
        for _ in range(6):
            table.hear(anna=FLOOR_DB, ben=OWN_DB + LEAK_DB)
        table.anna(10)
        soft = [Level((start + n) * FRAME_NS, OWN_DB + LEAK_DB, 0.9) for n in range(6)]
        assert not table.leaks("ben", soft)


def test_a_neighbour_says_nothing_while_packets_of_who_speaks_are_lost() -> None:
    """Filled with silence or missing at all: what Ben's microphone overhears meanwhile stays Anna's."""
    for filled in (True, False):
        table = Table()
        table.quiet()
        table.anna()
        for _ in range(9):
            lost = {"anna": -120.0} if filled else {}
            margins = table.hear(ben=OWN_DB + LEAK_DB, **lost)
            assert margins["ben"] is not None
            assert margins["ben"] < SeatSettings().foreign_below_db, filled
            if filled:
                assert margins["anna"] is not None
                assert margins["anna"] > SeatSettings().own_above_db
        table.quiet(60)
        # The silence that was put there is no quiet room: how loud one has to be stays as it was.
        assert table.seats.microphones["anna"].floor_db > FLOOR_DB - 3.0
        # And a microphone that is gone for good is not waited for.
        for _ in range(20):
            gone = table.hear(ben=OWN_DB)
        assert gone["ben"] == 40.0
