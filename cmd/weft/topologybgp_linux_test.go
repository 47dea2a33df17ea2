package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// frrFabric is FRR's daemons in a fabric of two leaves and two spines, with a host at the first
// leaf, in network namespaces. Addresses are an operator's, of both families.
type frrFabric struct {
	t     *testing.T
	name  string // that all namespaces begin with
	dir   string
	graph string // its file
}

const frrGraph = `nodes:
  s1: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001}
  s2: {tier: 2, addresses: [172.16.0.2, "2001:db8::2"], as: 65002}
  l1: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"], as: 65101}
  l2: {tier: 1, prefixes: [192.168.2.64/26, "2001:db8:2::/64"], as: 65102}
links:
  - {ends: [l1, s1], ports: [to-s1, to-l1]}
  - {ends: [l1, s2], ports: [to-s2, to-l1]}
  - {ends: [l2, s1], ports: [to-s1, to-l2]}
  - {ends: [l2, s2], ports: [to-s2, to-l2]}
`

const frrDaemons = "/usr/lib/frr/"

// newFRR sets the fabric up, and takes it down at the end of the test.
func newFRR(t *testing.T) *frrFabric {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	if _, err := os.Stat(frrDaemons + "bgpd"); err != nil {
		t.Skipf("FRR is missing: %v", err)
	}
	// FRR's daemons run as a user of their own, who may not enter a test's own directory.
	dir, err := os.MkdirTemp("", "weft-frr")
	if err != nil {
		t.Fatal(err)
	}
	f := &frrFabric{t: t, name: fmt.Sprintf("weft-f%d-", os.Getpid()), dir: dir}
	t.Cleanup(f.down)
	f.run("chmod", "755", dir)
	for _, n := range []string{"s1", "s2", "l1", "l2", "h1"} {
		f.run("ip", "netns", "add", f.name+n)
		f.run("ip", "-n", f.name+n, "link", "set", "lo", "up")
		f.at(n, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv6.conf.default.accept_dad=0")
	}
	for _, l := range [][2]string{{"l1", "s1"}, {"l1", "s2"}, {"l2", "s1"}, {"l2", "s2"}, {"l1", "h1"}} {
		f.run("ip", "link", "add", "to-"+l[1], "netns", f.name+l[0], "type", "veth", "peer", "name", "to-"+l[0], "netns", f.name+l[1])
		f.run("ip", "-n", f.name+l[0], "link", "set", "to-"+l[1], "up")
		f.run("ip", "-n", f.name+l[1], "link", "set", "to-"+l[0], "up")
	}
	f.run("ip", "-n", f.name+"l1", "addr", "add", "192.168.1.65/26", "dev", "to-h1")
	f.run("ip", "-n", f.name+"h1", "addr", "add", "192.168.1.66/26", "dev", "to-l1")
	f.graph = filepath.Join(dir, "graph.yaml")
	if err := os.WriteFile(f.graph, []byte(frrGraph), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"s1", "s2", "l1", "l2"} {
		f.start(n)
	}
	return f
}

// run fails the test if a command does.
func (f *frrFabric) run(argv ...string) {
	f.t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

// at runs a command in a node's namespace.
func (f *frrFabric) at(node string, argv ...string) {
	f.t.Helper()
	f.run(append([]string{"ip", "netns", "exec", f.name + node}, argv...)...)
}

// start runs a switch's zebra and bgpd, configured as weft plan says.
func (f *frrFabric) start(node string) {
	f.t.Helper()
	conf := mustWeft(f.t, "plan", "--for", "frr", "--topology", f.graph, "--node", node)
	dir := filepath.Join(f.dir, node)
	file := filepath.Join(dir, "frr.conf")
	f.run("mkdir", dir)
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		f.t.Fatal(err)
	}
	f.run("chown", "-R", "frr:frr", dir)
	if out, err := exec.Command("vtysh", "-C", "-f", file).CombinedOutput(); err != nil || len(out) > 0 {
		f.t.Fatalf("vtysh refuses the configuration of %s: %v: %s\n%s", node, err, out, conf)
	}
	for _, daemon := range []string{"zebra", "bgpd"} {
		f.at(node, frrDaemons+daemon, "-d", "-N", f.name+node, "-f", file,
			"-i", filepath.Join(dir, daemon+".pid"), "-z", filepath.Join(dir, "z.sock"), "--vty_socket", dir)
	}
}

// down ends all that runs in the namespaces, and removes them.
func (f *frrFabric) down() {
	for _, n := range []string{"h1", "l1", "l2", "s1", "s2"} {
		pids, _ := exec.Command("ip", "netns", "pids", f.name+n).Output()
		for _, pid := range strings.Fields(string(pids)) {
			exec.Command("kill", "-9", pid).Run()
		}
		exec.Command("ip", "netns", "del", f.name+n).Run()
	}
	os.RemoveAll(f.dir)
}

// heard runs weft at the host until it prints all of want, or for half a minute.
func (f *frrFabric) heard(want ...string) {
	f.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		self := program(f.t, "topology", "from-bgp", "--as", "4200000001", "--neighbor", "192.168.1.65=65101")
		c := exec.Command("ip", append([]string{"netns", "exec", f.name + "h1"}, self.Args...)...)
		c.Env = self.Env
		b, err := c.CombinedOutput()
		missing := ""
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				missing = w
			}
		}
		if missing == "" && err == nil {
			return
		}
		if time.Since(began) > 30*time.Second {
			f.t.Fatalf("%v; no %q in\n%s", err, missing, b)
		}
	}
}

// A host hears from FRR's leaf which spines lead to which racks, and when a link fails.
func TestTopologyFromBGP_FRR(t *testing.T) {
	slowtest.System(t)
	f := newFRR(t)
	const failing = "  - {ends: [as65102, as65001]}\n"
	f.heard(
		"# paths between racks: 2 to 2\nnodes:\n", // nothing is guessed
		`  as65101: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"], as: 65101}`,
		`  as65102: {tier: 1, prefixes: [192.168.2.64/26, "2001:db8:2::/64"], as: 65102}`,
		`  as65001: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001}`,
		`  as65002: {tier: 2, addresses: [172.16.0.2, "2001:db8::2"], as: 65002}`,
		failing, "  - {ends: [as65102, as65002]}\n")
	f.run("ip", "-n", f.name+"s1", "link", "set", "to-l2", "down")
	f.heard("# paths between racks: 1 to 1\nnodes:\n", "  - {ends: [as65102, as65002]}\n")
	f.run("ip", "-n", f.name+"s1", "link", "set", "to-l2", "up")
	f.heard("# paths between racks: 2 to 2\n", failing)
}
