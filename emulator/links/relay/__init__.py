"""The relay: cables for kernels without `sch_netem`. Both ends are TAP devices, one process moves the packets.

`driver` is what a lab uses; `python -m emulator.links.relay LAB_DIRECTORY` is the supervised process behind it.
Nothing heavy is imported here or by that process: it starts with every `emu up`.
"""
