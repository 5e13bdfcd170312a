"""Nodes as containers of a Docker (or Podman) engine; links are plugged in from outside. Nothing is loaded here:
whether an engine answers is seen without the SDK."""
