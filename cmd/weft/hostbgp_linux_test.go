package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"weft/internal/daemon"
	"weft/internal/frr"
	"weft/internal/kernel"
	"weft/internal/slowtest"
	"weft/lab"
)

// bgpLab is a lab whose switches run FRR, with weft host on all hosts.
type bgpLab struct {
	testing.TB
	name string
	dir  string
}

// newBGPLab sets it up. Each host's configuration has five lines.
func newBGPLab(t testing.TB, spec, mode, policy string, hosts map[string]string) *bgpLab {
	t.Helper()
	l := upBGPLab(t, spec)
	as := uint32(4250000000)
	for host, leaf := range hosts {
		as++
		route := strings.Fields(l.in(host, "ip route show default"))
		l.configure(host, fmt.Sprintf("mode: %s\ntopology: bgp\npolicy: %s\nbgp: {as: %d, neighbors: [%s=%s]}\nuser: root\n", mode, policy, as, route[2], l.asOf(leaf)))
	}
	return l
}

// upBGPLab sets up the switches, and hosts without weft.
func upBGPLab(t testing.TB, spec string, flags ...string) *bgpLab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	l := &bgpLab{TB: t, name: fmt.Sprintf("t%db", os.Getpid()), dir: t.TempDir()}
	t.Cleanup(func() {
		if _, err := lab.Down(l.name); err != nil {
			t.Error(err)
		}
	})
	mustWeft(t, append([]string{"lab", "up", "--name", l.name, "--topology", spec, "--routing", "bgp", "--seed", "5", "--rate", "50"}, flags...)...)
	return l
}

// configure runs weft host at a host until the test ends.
func (l *bgpLab) configure(host, text string) {
	l.Helper()
	file := filepath.Join(l.dir, host+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		l.Fatal(err)
	}
	l.daemon(host, file)
}

// asOf returns the AS of a switch.
func (l *bgpLab) asOf(node string) string {
	l.Helper()
	conf := l.in(node, "vtysh --vty_socket "+filepath.Join("/run/weft", l.name+".frr", node)+" -c 'show running-config'")
	m := regexp.MustCompile(`router bgp (\d+)`).FindStringSubmatch(conf)
	if m == nil {
		l.Fatalf("%s has no AS:\n%s", node, conf)
	}
	return m[1]
}

// daemon runs weft host until the test ends, and waits until it uses its carrier.
func (l *bgpLab) daemon(host, file string) {
	l.Helper()
	self := program(l.TB, "host", "--config", file)
	c := exec.Command("ip", append([]string{"netns", "exec", "weft-" + l.name + "-" + host}, self.Args...)...)
	c.Env = self.Env
	log, err := os.Create(filepath.Join(l.dir, host+".log"))
	if err != nil {
		l.Fatal(err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			l.Errorf("weft host at %s: %v", host, err)
		}
		if l.Failed() {
			l.Logf("%s says\n%s", host, l.says(host))
		}
	})
}

func (l *bgpLab) says(host string) string {
	b, err := os.ReadFile(filepath.Join(l.dir, host+".log"))
	if err != nil {
		l.Fatal(err)
	}
	return string(b)
}

// in runs a shell's line at a node and returns what it prints.
func (l *bgpLab) in(node, line string) string {
	l.Helper()
	out, err := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-"+node, "bash", "-c", line).Output()
	if err != nil {
		l.Fatalf("%s: %s: %v", node, line, err)
	}
	return string(out)
}

// waitFor waits until a condition holds.
func (l *bgpLab) waitFor(what string, holds func() bool) {
	l.Helper()
	const patience = 2 * time.Minute
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// carryBoth waits until hosts carry both families to all racks.
func (l *bgpLab) carryBoth(hosts ...string) {
	l.Helper()
	for _, host := range hosts {
		l.waitFor(host+" carries both families", func() bool {
			says := l.says(host)
			return (strings.Contains(says, ": carried by ipip") || strings.Contains(says, ": carried by srv6")) && strings.Contains(says, ": carried by IPv6 in IPv6") &&
				l.status(host, "state") == "working" && l.status(host, "racks.0.plain") != "true"
		})
	}
}

// status returns one value of a host's status.
func (l *bgpLab) status(host, key string) string {
	l.Helper()
	out, _ := weft(l.TB, "status", "--all", "--socket", l.socket(host))
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key {
			return strings.Join(f[1:], " ")
		}
	}
	return ""
}

// socket is the status socket of a host's daemon. To ask there costs less than a process
// in the host's namespace.
func (l *bgpLab) socket(host string) string {
	l.Helper()
	ns, err := netns.GetFromName("weft-" + l.name + "-" + host)
	if err != nil {
		l.Fatal(err)
	}
	defer ns.Close()
	var path string
	if err := kernel.Within(ns, func() (err error) { path, err = daemon.StatusSocket(); return err }); err != nil {
		l.Fatal(err)
	}
	return path
}

// nodes returns the status of the lab.
func (l *bgpLab) nodes() (nodes []lab.NodeStatus) {
	l.Helper()
	if err := json.Unmarshal([]byte(mustWeft(l.TB, "lab", "status", "--json", "--name", l.name)), &nodes); err != nil {
		l.Fatal(err)
	}
	return nodes
}

// decapsulated returns how many packets each switch has decapsulated.
func (l *bgpLab) decapsulated() map[string]uint64 {
	l.Helper()
	all := make(map[string]uint64)
	for _, n := range l.nodes() {
		if n.Counters != nil {
			all[n.Node] = n.Counters.Decapsulated
		}
	}
	return all
}

// send has nc take bytes from one host to another, and compares their hashes. It returns
// how many packets bounced at each switch.
func (l *bgpLab) send(from, to string) map[string]uint64 {
	l.Helper()
	return l.sendBy("-4", from, to)
}

// send6 is send over IPv6.
func (l *bgpLab) send6(from, to string) map[string]uint64 {
	l.Helper()
	return l.sendBy("-6", from, to)
}

func (l *bgpLab) sendBy(family, from, to string) map[string]uint64 {
	l.Helper()
	return l.sendTo(family, from, to, l.addressOf(family, to))
}

// addressOf returns a host's address of a family.
func (l *bgpLab) addressOf(family, host string) string {
	l.Helper()
	return strings.TrimSpace(l.in(host, "ip "+family+" -o addr show scope global | sed 's/.*inet6* //; s,/.*,,'"))
}

func (l *bgpLab) sendTo(family, from, to, addr string) map[string]uint64 {
	l.Helper()
	before := l.decapsulated()
	source := filepath.Join(l.dir, "bytes")
	want := l.in(from, "head -c 5000000 /dev/urandom | tee "+source+" | sha256sum")
	got := make(chan string, 1)
	go func() {
		out, _ := exec.Command("ip", "netns", "exec", "weft-"+l.name+"-"+to, "bash", "-c", "timeout 60 nc "+family+" -l 9000 | sha256sum").Output()
		got <- string(out)
	}()
	l.waitFor("nc listens", func() bool { return strings.Contains(l.in(to, "ss -ltn"), ":9000") })
	l.in(from, "timeout 60 nc -N "+addr+" 9000 < "+source)
	if sum := <-got; sum != want {
		l.Fatalf("%s to %s: the hash is %s, want %s", from, to, sum, want)
	}
	after := l.decapsulated()
	for n := range after {
		after[n] -= before[n]
	}
	return after
}

// A host of which nobody has said what its fabric is sprays over all spines that its switch
// tells of by BGP, quits a link that the switches withdraw, and takes it back.
func TestHost_learnsTheFabricFromFRR(t *testing.T) {
	slowtest.System(t)
	for _, c := range []struct{ mode, policy string }{{"offload", "drb"}, {"gateway", "presto"}} {
		t.Run(c.mode, func(t *testing.T) {
			if c.mode == "gateway" {
				slowtest.Release(t, "TestHost_gatewayOfBothFamiliesChanges", "IPv4 alone; both families spray, quit a link and take it back there")
			}
			l := newBGPLab(t, "leaf-spine:leaves=2,spines=2,hosts=1", c.mode, c.policy, map[string]string{"h1-1": "leaf1", "h2-1": "leaf2"})
			for _, host := range []string{"h1-1", "h2-1"} {
				l.waitFor(host+" uses the carrier", func() bool { return strings.Contains(l.says(host), ": carried by ipip") })
				if got := l.status(host, "topology"); got != "bgp (2 racks, 2 bouncing switches)" {
					t.Errorf("%s: the fabric is %q", host, got)
				}
			}
			// 5 MB are some 3,600 packets, or fewer where super-segments bounce whole.
			even := func(by map[string]uint64) bool {
				return by["spine1"] > 400 && by["spine2"] > 400 && by["spine1"] < 3*by["spine2"] && by["spine2"] < 3*by["spine1"]
			}
			if by := l.send("h1-1", "h2-1"); !even(by) {
				t.Errorf("bounced at %v", by)
			}
			mustWeft(t, "lab", "fail", "--name", l.name, "spine1-leaf2")
			l.waitFor("the link is out of use", func() bool { return l.status("h1-1", "failures.down.0") != "" })
			if by := l.send("h1-1", "h2-1"); by["spine1"] > 100 || by["spine2"] < 1000 {
				t.Errorf("without a link: bounced at %v", by)
			}
			mustWeft(t, "lab", "heal", "--name", l.name, "spine1-leaf2")
			l.waitFor("the link is in use", func() bool { return l.status("h1-1", "failures.down.0") == "" })
			time.Sleep(time.Second) // its switch is proved again
			if by := l.send("h1-1", "h2-1"); !even(by) {
				t.Errorf("healed: bounced at %v", by)
			}
		})
	}
}
