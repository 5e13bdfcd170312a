# emu's images by `docker buildx bake`, from the contexts that `emu images prepare` wrote:
#
#     emu images prepare --arch all
#     docker buildx bake -f images/docker-bake.hcl             # or one: base, torch-amd64, emu-arm64, ...
#
# A target for each image and processor, so that the engine's own builder can load them.

# What base starts from; "emu/bootstrap" is what `emu images prepare --base bootstrap` made.
variable "BASE" { default = "python:3.11-slim-bookworm" }

# Where the contexts are.
variable "CONTEXTS" { default = "build/images" }

# Engines before Docker 23 cannot build an image on another of the same bake: set this to false there, and bake
# base, torch and emu one after the other.
variable "LINKED" { default = true }

group "default" {
  targets = ["base", "torch", "emu"]
}

target "base" {
  name      = "base-${arch}"
  matrix    = { arch = ["amd64", "arm64"] }
  context   = "${CONTEXTS}/base-${arch}"
  platforms = ["linux/${arch}"]
  tags      = ["emu/base:${arch}"]
  labels    = { "emu.image" = "base" }
  args = {
    ARCH = arch
    BASE = BASE == "emu/bootstrap" ? "emu/bootstrap:${arch}" : BASE
  }
}

target "torch" {
  name      = "torch-${arch}"
  matrix    = { arch = ["amd64", "arm64"] }
  context   = "${CONTEXTS}/torch-${arch}"
  contexts  = LINKED ? { "emu/base:${arch}" = "target:base-${arch}" } : {}
  platforms = ["linux/${arch}"]
  tags      = ["emu/torch:${arch}"]
  labels    = { "emu.image" = "torch" }
  args      = { BASE = "emu/base:${arch}" }
}

target "emu" {
  name      = "emu-${arch}"
  matrix    = { arch = ["amd64", "arm64"] }
  context   = "${CONTEXTS}/emu-${arch}"
  contexts  = LINKED ? { "emu/torch:${arch}" = "target:torch-${arch}" } : {}
  platforms = ["linux/${arch}"]
  tags      = ["emu/emu:${arch}"]
  labels    = { "emu.image" = "emu" }
  args      = { BASE = "emu/torch:${arch}" }
}
