#!/usr/bin/env python3
"""Plays the same flows in csg-htsim and in weft's simulator, and prints what both say.

It clones and builds csg-htsim, builds weft, and runs the two in turn on one core:

    bench/htsim/compare.py                   # everything: some minutes
    bench/htsim/compare.py --cases incast    # one case

Both have a fat-tree of 1 Gbit/s links, 5 us a link, queues of 87 packets that drop at the tail,
packets of 1,500 bytes with 1,460 of payload, windows of 44 segments, an initial window of 10, a
retransmission timeout of at least 250 ms and 3 s before the first round trip is measured, a
handshake, timestamps, and ECMP by flow. Senders and receivers are the same in both. Each
simulator draws the paths of the flows by itself, from the seed. csg-htsim's TCP is NewReno; weft's
has selective acknowledgements.
"""
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys

HTSIM = "https://github.com/Broadcom/csg-htsim"
COMMIT = "841d9e7be46bb968eece766aa4b6c044c7799f67"
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OBJECTS = ["fat_tree_topology.o", "fat_tree_switch.o", "connection_matrix.o", "firstfit.o"]
MSS, QUEUE, WINDOW = 1460, 87, 44


def run(*command, **options):
    """What a command prints, and the processor seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except FileNotFoundError:
        sys.exit("%s is not here: install git, make, g++ and Go" % command[0])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit("%s failed:\n%s" % (" ".join(command), (done.stderr or done.stdout)[-2000:]))
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build(directory):
    """Builds both simulators in a directory, and gives their programs."""
    source = os.path.join(directory, "csg-htsim")
    if not os.path.isdir(source):
        run("git", "clone", "--quiet", "--no-checkout", HTSIM, source)
    run("git", "-C", source, "checkout", "--quiet", COMMIT, "--", "sim")
    sim, center = source + "/sim", source + "/sim/datacenter"
    run("make", "-C", sim, "libhtsim.a")
    run("make", "-C", center, *OBJECTS)
    htsim = os.path.join(directory, "flows")
    run("g++", "-O2", "-std=c++11", "-I", sim, "-I", center, HERE + "/flows.cpp",
        *[center + "/" + o for o in OBJECTS], "-L", sim, "-lhtsim", "-o", htsim)
    weft = os.path.join(directory, "weft")
    run("go", "build", "-o", weft, "./cmd/weft", cwd=ROOT)
    return htsim, weft


class Case:
    """Flows over a fat-tree: a list of sender and receiver, all of so many packets, from 0 on."""

    def __init__(self, name, k, end_ms, packets, flows):
        self.name, self.k, self.end_ms, self.packets, self.flows = name, k, end_ms, packets, flows
        self.hosts = k * k * k // 4

    def host(self, i):
        """weft's name of a host: pod, edge switch, and the host's own number, from 2 on."""
        half = self.k // 2
        return "h%d.%d.%d" % (i // (half * half), i // half % half, 2 + i % half)

    def in_htsim(self, program, seed):
        text = "".join("%d %d %d\n" % (a, b, self.packets) for a, b in self.flows)
        out, cpu = run(program, str(self.hosts), "1000", "5", str(QUEUE), str(WINDOW), "100",
                       str(self.end_ms), str(seed), input=text)
        rows = [line.split() for line in out.splitlines()]
        acked = sum(int(r[0]) for r in rows)
        return {"ms": [float(r[1]) if float(r[1]) >= 0 else self.end_ms for r in rows],
                "mbit": acked * MSS * 8 / 1e3 / self.end_ms / self.hosts, "cpu": cpu}

    def in_weft(self, program, seed, file):
        lines = ["    - {at: 0s, from: %s, to: %s, bytes: %d}" % (self.host(a), self.host(b), self.packets * MSS)
                 for a, b in self.flows]
        with open(file, "w") as f:
            f.write("""topology: fat-tree:k=%d,host-rate=1000,fabric-rate=1000,core-rate=1000
policies: [switch-ecmp]
duration: %dms
drain: 0s
seed: %d
delay: 5us
queues: [{bytes: %d}]
tcp: {mss: %d, window_bytes: %d, initial_window: 10, rto_min: 250ms, rto_initial: 3s, handshake: true, timestamps: true}
traffic:
  matrix: list
  list:
%s
""" % (self.k, self.end_ms, seed, QUEUE * 1500, MSS, WINDOW * MSS, "\n".join(lines)))
        out, cpu = run(program, "sim", "run", file, "--json", "-j", "1", "--progress", "none")
        r = json.loads(out)[0]
        return {"mean": r["mean_ms"], "last": r["last_ms"], "mbit": r["goodput_mean_mbit"], "cpu": cpu}


def permutation(k, end_ms):
    def make(seed):
        order = list(range(k * k * k // 4))
        random.Random(seed).shuffle(order)
        return Case("permutation, k=%d, %d ms" % (k, end_ms), k, end_ms, 10**6, list(zip(order, order[1:] + order[:1])))
    return make


def incast(senders, k):
    def make(seed):
        hosts = random.Random(seed).sample(range(k * k * k // 4), senders + 1)
        return Case("incast, %d to one, 180 packets each" % senders, k, 10000, 180, [(h, hosts[0]) for h in hosts[1:]])
    return make


# The cases by name: how flows are made, and how many seeds.
CASES = {"permutation-8": (permutation(8, 100), 5), "permutation-24": (permutation(24, 10), 2), "incast": (incast(32, 8), 20)}


def spread(values, digits=1):
    return "%.*f (%.*f to %.*f)" % (digits, statistics.mean(values), digits, min(values), digits, max(values))


def compare(name, make, seeds, htsim, weft, directory):
    theirs, ours = [], []
    for seed in range(1, seeds + 1):
        case = make(seed)
        a = case.in_htsim(htsim, seed)
        a["mean"], a["last"] = statistics.mean(a["ms"]), max(a["ms"])
        theirs.append(a)
        ours.append(case.in_weft(weft, seed, os.path.join(directory, name + ".yaml")))
    rows = [("mbit", "Mbit/s a host")] if name.startswith("permutation") else [("mean", "mean ms of a flow"), ("last", "ms until the last ended")]
    for key, label in rows:
        a, b = [r[key] for r in theirs], [r[key] for r in ours]
        print("| %s | %s | %d | %s | %s | %.3f |" % (case.name, label, seeds, spread(a), spread(b), statistics.mean(b) / statistics.mean(a)))
    a, b = sum(r["cpu"] for r in theirs), sum(r["cpu"] for r in ours)
    print("| %s | CPU-s in all | %d | %.1f | %.1f | %.3f |" % (case.name, seeds, a, b, b / a))
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", default=",".join(CASES), help="of " + ", ".join(CASES))
    p.add_argument("--seeds", type=int, default=0, help="how many, from 1 on (default: 5, 2 and 20)")
    p.add_argument("--directory", default=os.path.join(os.path.expanduser("~"), ".cache", "weft-htsim"), help="where both are built; csg-htsim is taken from there if it is")
    o = p.parse_args()
    names = o.cases.split(",")
    for name in names:
        if name not in CASES:
            p.error("--cases: %r is unknown; choose of %s" % (name, ", ".join(CASES)))
    if o.seeds < 0:
        p.error("--seeds: %d; write 1 or more" % o.seeds)
    os.makedirs(o.directory, exist_ok=True)
    htsim, weft = build(o.directory)
    print("| flows | | seeds | csg-htsim | weft | weft by csg-htsim |\n|---|---|---|---|---|---|")
    for name in names:
        make, seeds = CASES[name]
        compare(name, make, o.seeds or seeds, htsim, weft, o.directory)


if __name__ == "__main__":
    main()
