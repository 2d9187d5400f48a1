"""Hosts as network namespaces, with mpirun over TCP between them."""

import contextlib
import os
import pathlib
import subprocess

from .machine import output
from .places import directory

NET = "10.231.8"
NAME = "hpb"


def ip(words):
    output("ip", *words.split())


@contextlib.contextmanager
def hosts(count):
    """Makes hosts with a network and a name of their own; yields the words that start a program on each of them."""
    with directory() as own:
        agent = pathlib.Path(own, "agent")
        agent.write_text(
            f"#!/bin/sh\nn=${{1#{NET}.1}}; shift\nexec ip netns exec {NAME}$n unshare --uts sh -c \"hostname node$n; $*\"\n"
        )
        agent.chmod(0o755)
        try:
            ip(f"link add {NAME}br type bridge")
            ip(f"addr add {NET}.1/24 dev {NAME}br")
            ip(f"link set {NAME}br up")
            for n in range(1, count + 1):
                ip(f"netns add {NAME}{n}")
                ip(f"link add {NAME}v{n} type veth peer name eth0 netns {NAME}{n}")
                ip(f"link set {NAME}v{n} master {NAME}br up")
                ip(f"-n {NAME}{n} addr add {NET}.1{n}/24 dev eth0")
                ip(f"-n {NAME}{n} link set eth0 up")
                ip(f"-n {NAME}{n} link set lo up")
            net, names = f"{NET}.0/24", ",".join(f"{NET}.1{n}" for n in range(1, count + 1))
            settings = {"plm_rsh_agent": agent, "plm_rsh_no_tree_spawn": 1, "oob_tcp_if_include": net, "btl": "tcp,self", "btl_tcp_if_include": net}
            words = [str(word) for name, value in settings.items() for word in ("--mca", name, value)]
            yield ["mpirun", "--allow-run-as-root", *words, "--host", names, "-np", str(count)]
        finally:
            for n in range(1, count + 1):
                subprocess.run(["ip", "netns", "del", f"{NAME}{n}"], capture_output=True, check=False)
            subprocess.run(["ip", "link", "del", f"{NAME}br"], capture_output=True, check=False)


def sectors(device):
    """Bytes that a device has read and written."""
    fields = pathlib.Path("/sys/class/block", os.path.basename(device), "stat").read_text().split()
    return int(fields[2]) * 512, int(fields[6]) * 512
