package interop

import (
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"weft/internal/slowtest"
)

// cores are the spines of the fabric.
var cores = []string{"3.0", "3.1", "3.2", "3.3"}

// capture is tcpdumps of what comes in IP-in-IP to all cores.
type capture []*process

func (n *network) capture() (c capture) {
	n.Helper()
	for _, core := range cores {
		p := n.start(core, "tcpdump", "-i", "any", "-Q", "in", "-n", "-v", "-l", "--immediate-mode", "-c", "20000", "-Z", "root", "ip proto 4")
		p.says("listening on")
		c = append(c, p)
	}
	return c
}

var tosField = regexp.MustCompile(`\(tos 0x([0-9a-f]+)`)

// tos ends a capture, and returns how many packets had each type of service, and
// by how many cores they came. Outer and inner headers must agree.
func (c capture) tos() (packets, byCores map[byte]int) {
	packets, byCores = make(map[byte]int), make(map[byte]int)
	for _, p := range c {
		p.n.Helper()
		p.cmd.Process.Signal(syscall.SIGINT)
		p.wait()
		seen := make(map[byte]bool)
		all := tosField.FindAllStringSubmatch(p.stdout.String(), -1)
		for i := 0; i+1 < len(all); i += 2 { // the last may be half printed
			outer, _ := strconv.ParseUint(all[i][1], 16, 8)
			inner, _ := strconv.ParseUint(all[i+1][1], 16, 8)
			if outer != inner {
				p.n.Fatalf("%s: a packet has type of service %#x outside and %#x inside", p.name, outer, inner)
			}
			packets[byte(outer)]++
			if !seen[byte(outer)] {
				seen[byte(outer)] = true
				byCores[byte(outer)]++
			}
		}
	}
	return packets, byCores
}

// What network and programs are to tell each other of packets in a tunnel.
func TestGateway_outerHeaders(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "c")
	n.run("ECN and DSCP", []string{"tcpdump", "iperf3", "ping"}, (*network).typesOfService)
	for _, policy := range []string{"presto", "drb"} {
		n.run("path MTU, "+policy, []string{"ping"}, func(n *network) { n.pathMTU("policy: " + policy + "\n") })
	}
}

// typesOfService looks for ECN and DSCP on the outer header.
func (n *network) typesOfService() {
	for _, node := range []string{hostA, hostB} {
		n.shell(node, "sysctl -qw net.ipv4.tcp_ecn=1")
		n.weft(node, "")
	}
	const ef, ect0 = 46 << 2, 2 // expedited forwarding, RFC 3246
	c := n.capture()
	n.connect(hostA, hostB, n.addr(hostB)).exchange(20_000_000)
	n.must(hostA, "ping", "-c", "3", "-i", "0.1", "-w", "30", "-Q", fmt.Sprint(ef), n.addr(hostB))
	packets, by := c.tos()
	if packets[ect0] < 100 || by[ect0] != len(cores) || packets[ef] == 0 {
		n.Errorf("packets by type of service: %v, by so many cores: %v", packets, by)
	}

	c = n.capture()
	server := n.start(hostB, "iperf3", "-s", "-1")
	n.listens(hostB, "5201")
	n.must(hostA, "iperf3", "-c", n.addr(hostB), "-C", "cubic", "-n", "20M", "--dscp", "46")
	server.wait()
	if packets, by = c.tos(); packets[ef|ect0] < 100 || by[ef|ect0] != len(cores) {
		n.Errorf("packets by type of service: %v, by so many cores: %v", packets, by)
	}
}
