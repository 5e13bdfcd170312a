"""The version of emu; a constant, so that it is known where emu is not installed but only lies there."""

VERSION = "0.1.0"
