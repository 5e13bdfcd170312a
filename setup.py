"""Puts the files that lie beside the package in a checkout inside it when it is built (`emulator.core.shipped`)."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithShipped(build_py):
    """build_py, and the folders that are shipped."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in ("images", "topologies", "experiments"):
                target = Path(self.build_lib) / "emulator" / "shipped" / name
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(name, target)


setup(cmdclass={"build_py": BuildWithShipped})
