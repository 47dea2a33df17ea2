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

// frr is FRR's daemons in a fabric of two leaves and two spines, with a host at the first
// leaf, in network namespaces. Addresses are an operator's, of both families.
type frr struct {
	t    *testing.T
	name string // that all namespaces begin with
	dir  string
}

const frrDaemons = "/usr/lib/frr/"

// newFRR sets the fabric up, and takes it down at the end of the test.
func newFRR(t *testing.T) *frr {
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
	f := &frr{t, fmt.Sprintf("weft-f%d-", os.Getpid()), dir}
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
	for at, addr := range map[string]string{"l1 to-h1": "192.168.1.65/26", "h1 to-l1": "192.168.1.66/26", "s1 lo": "172.16.0.1/32", "s2 lo": "172.16.0.2/32"} {
		n, dev, _ := strings.Cut(at, " ")
		f.run("ip", "-n", f.name+n, "addr", "add", addr, "dev", dev)
	}
	f.start("s1", 65001, "172.16.0.1/32 2001:db8::1/128", "l1 l2")
	f.start("s2", 65002, "172.16.0.2/32 2001:db8::2/128", "l1 l2")
	f.start("l1", 65101, "192.168.1.64/26 2001:db8:1::/64", "s1 s2")
	f.start("l2", 65102, "192.168.2.64/26 2001:db8:2::/64", "s1 s2")
	return f
}

// run fails the test if a command does.
func (f *frr) run(argv ...string) {
	f.t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

// at runs a command in a node's namespace.
func (f *frr) at(node string, argv ...string) {
	f.t.Helper()
	f.run(append([]string{"ip", "netns", "exec", f.name + node}, argv...)...)
}

// start runs a switch's zebra and bgpd.
func (f *frr) start(node string, as int, prefixes, peers string) {
	f.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "frr defaults datacenter\nhostname %s\nrouter bgp %d\n bgp router-id 1.1.1.%d\n no bgp ebgp-requires-policy\n no bgp network import-check\n", node, as, as%250)
	for _, p := range strings.Fields(peers) {
		fmt.Fprintf(&b, " neighbor to-%s interface remote-as external\n", p)
	}
	leaf := node[0] == 'l'
	if leaf {
		b.WriteString(" neighbor H peer-group\n neighbor H remote-as external\n neighbor H passive\n bgp listen range 192.168.1.64/26 peer-group H\n")
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		fmt.Fprintf(&b, " address-family %s unicast\n", family)
		for _, p := range strings.Fields(prefixes) {
			if strings.Contains(p, ":") == (family == "ipv6") {
				fmt.Fprintf(&b, "  network %s\n", p)
			}
		}
		for _, p := range strings.Fields(peers) {
			fmt.Fprintf(&b, "  neighbor to-%s activate\n", p)
		}
		if leaf {
			b.WriteString("  neighbor H activate\n  neighbor H addpath-tx-all-paths\n")
		}
		b.WriteString(" exit-address-family\n")
	}
	dir := filepath.Join(f.dir, node)
	f.run("mkdir", dir)
	if err := os.WriteFile(filepath.Join(dir, "frr.conf"), []byte(b.String()), 0o644); err != nil {
		f.t.Fatal(err)
	}
	f.run("chown", "-R", "frr:frr", dir)
	for _, daemon := range []string{"zebra", "bgpd"} {
		f.at(node, frrDaemons+daemon, "-d", "-N", f.name+node, "-f", filepath.Join(dir, "frr.conf"),
			"-i", filepath.Join(dir, daemon+".pid"), "-z", filepath.Join(dir, "z.sock"), "--vty_socket", dir)
	}
}

// down ends all that runs in the namespaces, and removes them.
func (f *frr) down() {
	for _, n := range []string{"h1", "l1", "l2", "s1", "s2"} {
		pids, _ := exec.Command("ip", "netns", "pids", f.name+n).Output()
		for _, pid := range strings.Fields(string(pids)) {
			exec.Command("kill", "-9", pid).Run()
		}
		exec.Command("ip", "netns", "del", f.name+n).Run()
	}
	os.RemoveAll(f.dir)
}

// graph runs weft at the host until it prints all of want, or for half a minute.
func (f *frr) graph(want ...string) {
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
	f.graph(
		"# paths between racks: 2 to 2\nnodes:\n", // nothing is guessed
		`  as65101: {tier: 1, prefixes: [192.168.1.64/26, "2001:db8:1::/64"], as: 65101}`,
		`  as65102: {tier: 1, prefixes: [192.168.2.64/26, "2001:db8:2::/64"], as: 65102}`,
		`  as65001: {tier: 2, addresses: [172.16.0.1, "2001:db8::1"], as: 65001}`,
		`  as65002: {tier: 2, addresses: [172.16.0.2, "2001:db8::2"], as: 65002}`,
		failing, "  - {ends: [as65102, as65002]}\n")
	f.run("ip", "-n", f.name+"s1", "link", "set", "to-l2", "down")
	f.graph("# paths between racks: 1 to 1\nnodes:\n", "  - {ends: [as65102, as65002]}\n")
	f.run("ip", "-n", f.name+"s1", "link", "set", "to-l2", "up")
	f.graph("# paths between racks: 2 to 2\n", failing)
}
