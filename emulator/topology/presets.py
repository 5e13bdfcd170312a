"""Link presets: what a DSL, cable or mobile line does to packets, each with the source of its figures.

`down` is towards the node that names the preset. Sources give a round trip; half of it is set each way.
Nothing here is guessed: where a source gives no jitter or loss, there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulator.core.units import Delay, Rate, Share

WEBPAGETEST = "WebPageTest, settings/connectivity.ini.sample"
SITESPEED = "sitespeed.io throttle, bin/index.js"
#: bytes that a frame costs beside its IP packet: header, checksum, preamble and gap (IEEE 802.3)
ETHERNET_OVERHEAD = 38
COMCAST = "tylertreat/comcast, README (latency added once a round trip)"


@dataclass(frozen=True)
class Preset:
    """One line type; `rate`s None = not limited, `delay` is one way, `overhead` bytes a packet."""

    name: str
    source: str
    down: Rate | None = None
    up: Rate | None = None
    delay: Delay = Delay(0)
    loss: Share = Share(0)
    overhead: int = 0


def _line(name: str, source: str, down: float, up: float, rtt: float, loss: float = 0.0) -> Preset:
    """A preset as its source writes it: kbit/s, ms of round trip, percent."""
    return Preset(name, source, Rate(down * 1e3), Rate(up * 1e3), Delay(rtt / 2 / 1e3), Share(loss / 100))


_ALL = (
    _line("wpt-fibre", WEBPAGETEST, 20000, 5000, 4),
    _line("wpt-cable", WEBPAGETEST, 5000, 1000, 28),
    _line("wpt-dsl", WEBPAGETEST, 1500, 384, 50),
    _line("wpt-3g", WEBPAGETEST, 1600, 768, 300),
    _line("wpt-3g-fast", WEBPAGETEST, 1600, 768, 150),
    _line("wpt-edge", WEBPAGETEST, 240, 200, 840),
    _line("wpt-2g", WEBPAGETEST, 35, 32, 1300),
    _line("wpt-dialup", WEBPAGETEST, 49, 30, 120),
    _line("sitespeed-fibre", SITESPEED, 20000, 5000, 2),
    _line("sitespeed-cable", SITESPEED, 5000, 1000, 14),
    _line("sitespeed-dsl", SITESPEED, 1500, 384, 25),
    _line("sitespeed-4g", SITESPEED, 9000, 9000, 85),
    _line("sitespeed-lte", SITESPEED, 12000, 12000, 35),
    _line("comcast-gprs", COMCAST, 50, 50, 500, 2),
    _line("comcast-edge", COMCAST, 250, 250, 300, 1.5),
    _line("comcast-3g", COMCAST, 750, 750, 250, 1.5),
    _line("comcast-dsl-poor", COMCAST, 2000, 2000, 70, 2),
    _line("comcast-dsl", COMCAST, 8000, 8000, 40, 0.5),
    _line("comcast-wifi", COMCAST, 30000, 30000, 40, 0.2),
    Preset(
        "lan",
        "derived: Ethernet's 1 Gbit/s with its 38 B a frame (IEEE 802.3), 0.1 ms one way",
        Rate(1e9),
        Rate(1e9),
        Delay(1e-4),
        overhead=ETHERNET_OVERHEAD,
    ),
    Preset("unlimited", "nothing is limited, delayed or lost"),
)

#: the short names; a name says which source it stands for
SHORT = {
    "fibre": "wpt-fibre",
    "cable": "wpt-cable",
    "dsl": "wpt-dsl",
    "3g": "wpt-3g",
    "4g": "sitespeed-4g",
    "lte": "sitespeed-lte",
    "wifi": "comcast-wifi",
}

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _ALL}
#: every name that a file may use
NAMES = (*SHORT, *PRESETS)


def find(name: str) -> Preset:
    """The preset of that full or short name; raises KeyError."""
    return PRESETS[SHORT.get(name, name)]
