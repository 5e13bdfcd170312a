"""`emu down`: remove a lab, or every trace of all labs."""

from __future__ import annotations

import typer

from emulator.cli.labs import LAB, either, name_of


def down(
    name: str | None = typer.Argument(
        None,
        metavar="[LAB]",
        help="Name of the lab, as with --lab, or its topology file; may be left out while only one is up.",
    ),
    lab: str | None = LAB,
    everything: bool = typer.Option(False, "--all", help="Remove all labs and whatever crashed commands left."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="List all that was removed."),
) -> None:
    """Stop a lab and remove all that emu made for it."""
    from emulator.core.errors import LabError, UsageError
    from emulator.core.lab_id import LabId
    from emulator.core.words import counted
    from emulator.lab.remove import check_allowed, leftovers, remove

    lab = either(name, lab)
    if everything and lab is not None:
        raise UsageError(f"--all removes every lab, and {lab!r} was named too", fix="give one of the two")
    if everything:
        labs = leftovers()
    else:
        labs = [LabId.of(name_of(lab))]
        if labs[0].name not in {found.name for found in leftovers()}:
            raise LabError(f"no lab named {labs[0].name!r} is there", fix="see `emu status --all`")
    check_allowed(labs)
    for item in labs:
        removed = remove(item)
        print(f"{item.name} is down ({counted(len(removed), 'thing')} removed)")
        if verbose:
            print("".join(f"  {line}\n" for line in removed), end="")
    if not labs:
        print("nothing to remove")
