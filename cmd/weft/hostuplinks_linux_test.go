package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weft/internal/daemon"
	"weft/internal/hostprog"
	"weft/internal/slowtest"
)

// A host with several uplinks sprays one connection over all of them and all spines, evenly.
// While an uplink, an edge switch or the receiver's uplink fails in the middle of a transfer,
// the connection lives, and it comes back to all paths.
func TestHost_severalUplinks(t *testing.T) {
	slowtest.System(t)
	for i, c := range []struct {
		name, spec string
		flags      []string
		uplinks    int
		fails      []string
	}{
		{"two edge switches", "leaf-spine:leaves=4,spines=2,hosts=1", []string{"--uplinks", "2"}, 2, []string{"h1-1-leaf2", "leaf1", "leaf3", "h2-1:eth1"}},
		{"three planes", "leaf-spine:leaves=2,spines=2,hosts=1", []string{"--planes", "3"}, 3, []string{"h1-1-p2-leaf1", "p1-leaf1", "p3-leaf2", "h2-1:eth1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := upBGPLab(t, c.spec, c.flags...)
			for i, host := range []string{"h1-1", "h2-1"} {
				l.configure(host, fmt.Sprintf("mode: offload\ntopology: bgp\npolicy: drb\nbgp: {as: %d, neighbors: [%s]}\nuser: root\n", 4250000001+i, l.neighbors(host)))
			}
			for _, host := range []string{"h1-1", "h2-1"} {
				l.waitFor(host+" uses all paths", func() bool { return l.paths(host) == 2*c.uplinks })
			}
			before := l.bounced("h1-1")
			l.send("h1-1", "h2-1")
			counts := make(map[netip.Addr]map[string]uint64)
			least, most := uint64(1<<63), uint64(0)
			for _, b := range l.bounced("h1-1") {
				for _, o := range before {
					if o.Addr == b.Addr && o.Uplink == b.Uplink {
						b.Packets -= o.Packets
					}
				}
				if !b.Addr.Is4() {
					continue
				}
				if counts[b.Addr] == nil {
					counts[b.Addr] = make(map[string]uint64)
				}
				counts[b.Addr][b.Uplink] = b.Packets
				least, most = min(least, b.Packets), max(most, b.Packets)
			}
			// 5 MB are some 3,600 packets.
			if t.Logf("packets by spine and uplink: %v", counts); least < 300 || most-least > least/4 {
				t.Errorf("from %d to %d packets by each path", least, most)
			}
			if !slowtest.Long() { // each kind of failure in one of the two
				c.fails = []string{c.fails[i], c.fails[i+2]}
			}
			for _, target := range c.fails {
				l.sendThrough("h1-1", "h2-1", target)
				l.waitFor("all paths are in use after "+target, func() bool {
					return l.paths("h1-1") == 2*c.uplinks && l.paths("h2-1") == 2*c.uplinks
				})
			}
		})
	}
}

// neighbors are a host's edge switches as its configuration names them.
func (l *bgpLab) neighbors(host string) string {
	l.Helper()
	var list []string
	for _, m := range regexp.MustCompile(`via (\S+) dev (\S+)`).FindAllStringSubmatch(l.in(host, "ip -4 route show default"), -1) {
		for _, n := range l.nodes() {
			for _, p := range n.Ports {
				if n.Node == host && p.Port == m[2] {
					list = append(list, m[1]+"="+l.asOf(p.Peer))
				}
			}
		}
	}
	return strings.Join(list, ", ")
}

// bounced is what a host has sent by each path.
func (l *bgpLab) bounced(host string) []hostprog.BounceStats {
	l.Helper()
	var s struct{ Offload hostprog.SprayStats }
	l.statusOf(host, &s)
	return s.Offload.Bounces
}

// paths is how many paths of IPv4 a host uses, 0 while packets go plain.
func (l *bgpLab) paths(host string) int {
	l.Helper()
	var s daemon.Status
	if !l.statusOf(host, &s) || s.State != daemon.StateWorking || len(s.Racks) > 0 || s.Failures == nil || len(s.Failures.Down) > 0 {
		return 0
	}
	n := 0
	for _, p := range s.Failures.Paths {
		if p.State == "up" {
			n++
		}
	}
	return n
}

// statusOf reads a host's status; false if there is none yet.
func (l *bgpLab) statusOf(host string, to any) bool {
	out, err := weft(l.TB, "status", "--json", "--socket", l.socket(host))
	return err == nil && json.Unmarshal([]byte(out), to) == nil
}

// sendThrough has nc take bytes from one host to another while something fails and heals, and
// compares their hashes.
func (l *bgpLab) sendThrough(from, to, target string) {
	l.Helper()
	source := filepath.Join(l.dir, "bytes")
	addr := strings.TrimSpace(l.in(to, "ip -4 -o addr show scope global | sed 's/.*inet6* //; s,/.*,,'"))
	want := l.in(from, "head -c 30000000 /dev/urandom | tee "+source+" | sha256sum")
	got := make(chan string, 1)
	go func() {
		out, _ := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-"+to, "bash", "-c", "timeout 90 nc -4 -l 9000 | sha256sum").Output()
		got <- string(out)
	}()
	l.waitFor("nc listens", func() bool { return strings.Contains(l.in(to, "ss -ltn"), ":9000") })
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		exec.Command("ip", "netns", "exec", "weft-"+l.name+"-"+from, "bash", "-c", "timeout 90 bash -c 'until nc -N "+addr+" 9000 < "+source+"; do sleep 0.2; done'").Run() // what has healed just now may refuse
	}()
	time.Sleep(time.Second)
	mustWeft(l.TB, "lab", "fail", "--name", l.name, target)
	time.Sleep(time.Second)
	mustWeft(l.TB, "lab", "heal", "--name", l.name)
	<-sent
	if sum := <-got; sum != want {
		l.Errorf("%s failed between %s and %s: the hash is %s, want %s", target, from, to, sum, want)
	}
}
