"""Several nodes for scripts/local-slurm: each a slurmd in namespaces of its own, joined by a bridge."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

SYSTEM = "/usr/sbin:/usr/local/sbin:/sbin"
PATIENCE_SECONDS = 40
NETWORK = "network.json"
BOOT = """
set -e
hostname "$1"
mount --bind "$2" /etc/hosts
ip link set lo up
for _ in $(seq 400); do ! ip link show eth0 >/dev/null 2>&1 || break; sleep 0.05; done
ip addr add "$3/24" dev eth0
ip link set eth0 up
exec "$4" -f "$5"
"""
"""What a node does in its own namespaces before it is a slurmd: eth0 is put there from outside."""


@dataclass(frozen=True)
class Network:
    """The nodes' network: a bridge on this machine, to which a cable leads from each node."""

    bridge: str
    subnet: str
    token: str
    """In the name of the nodes' /etc/hosts, by which their processes are told from all others."""
    nodes: tuple[str, ...]

    @property
    def controller(self) -> str:
        """The address of this machine on the bridge."""
        return f"{self.subnet}.1"

    def address(self, node: str) -> str:
        return f"{self.subnet}.{11 + self.nodes.index(node)}"

    def cable(self, node: str) -> str:
        """The name of a cable's end at the bridge."""
        return f"{self.bridge}-{self.nodes.index(node) + 1}"

    def hosts(self, node: str) -> str:
        """The name of the file that a node has as /etc/hosts."""
        return f"hosts-{node}-{self.token}"


def find_program(name: str, package: str = "slurm-wlm munge") -> str:
    """Return where a program is; those of the system may not be in a user's PATH."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM}")
    if path is None:
        raise RuntimeError(f"there is no {name} on this machine; apt-get install {package}")
    return path


def environment(folder: Path) -> dict[str, str]:
    """What makes Slurm's commands speak to this cluster."""
    return {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}


def plan_network(nodes: int) -> Network:
    """Choose a bridge and a subnet that this machine does not have yet."""
    routes, token = ip("-4", "route", "show", "table", "all"), secrets.token_hex(4)
    free = (f"10.213.{number}" for number in range(1, 255) if f"10.213.{number}." not in routes)
    names = tuple(f"n{number + 1}" for number in range(nodes))
    return Network(f"hs{token}", next(free), token, names)


def build_network(folder: Path, network: Network) -> None:
    """Make the bridge, and the files in which the nodes look up one another's addresses."""
    (folder / NETWORK).write_text(json.dumps(asdict(network)))
    known = {socket.gethostname(): network.controller, **{n: network.address(n) for n in network.nodes}}
    for node in network.nodes:
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in known.items())]
        (folder / network.hosts(node)).write_text("\n".join(lines) + "\n")
    ip("link", "add", network.bridge, "type", "bridge")
    ip("addr", "add", f"{network.controller}/24", "dev", network.bridge)
    ip("link", "set", network.bridge, "up")


def ip(*words: str) -> str:
    """Run iproute2's command, and return what it prints."""
    done = subprocess.run(
        [find_program("ip", "iproute2"), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def read_network(folder: Path) -> Network | None:
    """Return the nodes' network; None for a cluster of one node."""
    if not (folder / NETWORK).is_file():
        return None
    values = json.loads((folder / NETWORK).read_text())
    return Network(**{**values, "nodes": tuple(values["nodes"])})


def find_node(folder: Path, node: str | None) -> tuple[Network, str]:
    network = read_network(folder)
    if network is None:
        raise RuntimeError(f"{folder}: no cluster of several nodes runs there; local-slurm start --nodes 2")
    if node not in network.nodes:
        raise RuntimeError(f"{node or 'no node'}: the nodes are {', '.join(network.nodes)}")
    return network, node


def power_on(folder: Path, network: Network, node: str) -> None:
    """Start a node in namespaces of its own, and connect it to the bridge."""
    if processes(network, node):
        raise RuntimeError(f"{node}: is running")
    hosts, conf = str(folder / network.hosts(node)), str(folder / "slurm.conf")
    words = ["unshare", "--net", "--uts", "--mount", "sh", "-c", BOOT, "boot", node, hosts,
             network.address(node), find_program("slurmd"), conf]  # fmt: skip
    with (folder / "start.log").open("ab") as log:
        boot = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(folder)
        )
    mine, space = Path("/proc/self/ns/net").readlink(), Path(f"/proc/{boot.pid}/ns/net")
    while boot.poll() is None and space.readlink() == mine:
        time.sleep(0.01)
    cable = network.cable(node)
    try:
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(boot.pid))
        ip("link", "set", cable, "master", network.bridge, "up")
        if boot.wait(PATIENCE_SECONDS):
            raise RuntimeError(f"{node}: slurmd does not start; the logs are in {folder}")
    except BaseException:
        boot.kill()
        raise


def power_off(folder: Path, network: Network, node: str) -> None:
    """Cut a node's cable, and kill all that runs there: nobody gets a word, as after a power loss."""
    with suppress(RuntimeError):  # a node that is off has none
        ip("link", "del", network.cable(node))
    give_up = time.monotonic() + PATIENCE_SECONDS
    while alive := processes(network, node):
        if time.monotonic() > give_up:
            raise RuntimeError(f"{node}: processes {alive} do not end")
        for number in alive:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.05)
    (folder / f"slurmd-{node}.pid").unlink(missing_ok=True)


def processes(network: Network, node: str) -> list[int]:
    """Return the numbers of a node's processes: those that have its /etc/hosts."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/mountinfo"):
        with suppress(OSError):
            if f"/{network.hosts(node)} /etc/hosts " in path.read_text():
                numbers.append(int(path.parent.name))
    return numbers


def remove_bridge(network: Network) -> None:
    with suppress(RuntimeError):  # it may be gone already
        ip("link", "del", network.bridge)
