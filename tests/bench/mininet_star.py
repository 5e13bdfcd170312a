"""Mininet's star of LinuxBridge, no shaping, timed. Run by the system's Python, which has Debian's mininet package.

Prints the monotonic time at which the network was started, and that at which it was asked to stop.
"""

import sys
import time

import mininet.net
from mininet.nodelib import LinuxBridge
from mininet.topo import SingleSwitchTopo

# It would raise limits of the whole host (sysctl), which a bench must not; a hundred hosts do not need them.
mininet.net.fixLimits = lambda: None


def run(hosts: int) -> None:
    net = mininet.net.Mininet(topo=SingleSwitchTopo(hosts), switch=LinuxBridge, controller=None)
    try:
        net.start()
        print(time.monotonic(), flush=True)
    finally:
        net.stop()


if __name__ == "__main__":
    run(int(sys.argv[1]))
