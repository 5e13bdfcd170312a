"""The Linux system calls that Python 3.10 does not offer, through libc; each raises OSError with the call's name.

Constants are from the kernel's uapi headers (sched.h, mount.h, prctl.h, capability.h).
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

NAMESPACE_FLAGS = {
    "net": CLONE_NEWNET,
    "pid": CLONE_NEWPID,
    "mnt": CLONE_NEWNS,
    "uts": CLONE_NEWUTS,
    "ipc": CLONE_NEWIPC,
}

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC = 32, 4096, 8192, 16384
MS_PRIVATE, MS_SLAVE = 1 << 18, 1 << 19
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NAME = 1, 4, 15
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4

_CAPABILITY_VERSION_3 = 0x20080522
#: number of each capability, in the kernel's order
_CAPABILITY_NAMES = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE
"""
CAPABILITIES = {name: number for number, name in enumerate(_CAPABILITY_NAMES.split())}

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> int:
    result: int = getattr(_libc, name)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Leave the caller's namespaces of these kinds for fresh ones (pid: for its future children)."""
    _call("unshare", flags)


def setns(fd: int, kind: int = 0) -> None:
    """Enter the namespace that `fd` stands for (pid: for the caller's future children)."""
    _call("setns", fd, kind)


def mount(source: str, target: str, fstype: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2). The error names the target."""
    try:
        _call(
            "mount",
            source.encode(),
            target.encode(),
            fstype.encode() or None,
            ctypes.c_ulong(flags),
            data.encode() or None,
        )
    except OSError as error:
        raise OSError(error.errno, f"mount {fstype or 'bind'}: {os.strerror(error.errno or 0)}", target) from None


def bind(source: str, target: str, *, read_only: bool = True) -> None:
    """Show `source` at `target` too, with no devices and no set-user-ID programs in it."""
    mount(source, target, flags=MS_BIND)
    flags = MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | (MS_RDONLY if read_only else 0)
    mount("none", target, flags=flags)


def umount(target: str, flags: int = MNT_DETACH) -> None:
    """umount2(2); lazily unless told otherwise."""
    _call("umount2", target.encode(), flags)


def pivot_root(new_root: str, put_old: str) -> None:
    """Make `new_root` (a mount point) the root of this mount namespace."""
    _call("pivot_root", new_root.encode(), put_old.encode())


def prctl(option: int, argument: int = 0, third: int = 0) -> int:
    """prctl(2) with number arguments."""
    return _call("prctl", option, ctypes.c_ulong(argument), ctypes.c_ulong(third), ctypes.c_ulong(0), ctypes.c_ulong(0))


def set_name(name: str) -> None:
    """Set the calling process's name, as `ps` shows it (cut at 15 bytes)."""
    _call("prctl", PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]), 0, 0, 0)


def title_area() -> tuple[int, int]:
    """Where in memory this process's command line lies (start, end); the same in every child that it forks."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[45]), int(fields[46])  # arg_start and arg_end, proc_pid_stat(5) fields 48 and 49


def set_title(title: str, area: tuple[int, int]) -> None:
    """Write `title` over the command line that the process was started with (cut at its length)."""
    set_name(title)
    start, end = area
    if 0 < start < end:
        ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)


def bound_capabilities(names: tuple[str, ...]) -> None:
    """Drop every capability but these from the bounding set: no exec of this process or its children gains one."""
    kept = {CAPABILITIES[name] for name in names}
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for number in range(last + 1):
        if number not in kept:
            prctl(PR_CAPBSET_DROP, number)


def keep_capabilities(names: tuple[str, ...]) -> None:
    """Drop every capability but these from the calling process, and forbid gaining any (no_new_privs).

    Inheritable stays empty: as in Docker since CVE-2022-24769, a set there would let files with capabilities
    raise what others lack.
    """
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    mask = sum(1 << CAPABILITIES[name] for name in names)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # effective, permitted, inheritable for the lower 32 capabilities, then for the upper ones
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    _call("capset", header, data)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(parent: int) -> None:
    """Be killed when the parent (whose pid is `parent`) dies; at once where it is dead already."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)
