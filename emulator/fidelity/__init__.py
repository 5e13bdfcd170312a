"""How near an emulated device comes to the published figures of the real one: `emu fidelity`."""
