"""Container images of emu: their packages fetched and checked on the host, built by the engine for either processor."""
