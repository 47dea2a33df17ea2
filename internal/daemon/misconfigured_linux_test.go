package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weft/fabric"
	"weft/internal/slowtest"
	"weft/lab"
)

// misconfigured is something that an operator got wrong, at the host or in the
// network.
type misconfigured struct {
	name   string
	config string                // of the host, besides its mode
	damage func(n *wrongNetwork) // what is wrong in the network, and with the kernel; nil: nothing
	later  func(n *wrongNetwork) // what goes wrong while the daemon is at work
	heal   func(n *wrongNetwork)
	says   []string // each is to be in the status or in the log
	both   []string // each is to be in both
	// refused: the daemon is to end and say so, and so does not touch the traffic.
	refused bool
	// modes, if not nil, are others than wrongModes.
	modes []string
}

// wrongModes are in what modes each case is tried.
var wrongModes = []string{"mode: gateway\npolicy: presto\n", "mode: offload\npolicy: drb\n"}

// wrongNetwork is the lab of the cases, of which nothing is bound by the processor.
type wrongNetwork struct {
	*network
	keys [2]string // files
}

// asPlanned brings a switch back to its plan.
func (n *wrongNetwork) asPlanned(switches ...string) {
	n.Helper()
	for _, s := range switches {
		plan, err := n.lab.Plan(n.node(s).ID)
		if err != nil {
			n.Fatal(err)
		}
		n.do(s, func() error { _, err := fabric.Apply(plan); return err })
	}
}

// each does the same at some nodes.
func (n *wrongNetwork) each(script string, nodes ...string) {
	n.Helper()
	for _, s := range nodes {
		n.shell(s, script)
	}
}

// port says which port of a node leads to another.
func (n *wrongNetwork) port(from, to string) string {
	n.Helper()
	for i, p := range n.lab.Config.Topology.Ports(n.node(from).ID) {
		if p.Peer == n.node(to).ID {
			return fmt.Sprintf("p%d", i)
		}
	}
	n.Fatalf("%s and %s are no neighbours", from, to)
	return ""
}

// mtu sets that of a link, at both ends.
func (n *wrongNetwork) mtu(a, b string, bytes int) {
	n.Helper()
	n.shell(a, fmt.Sprintf("ip link set %s mtu %d", n.port(a, b), bytes))
	n.shell(b, fmt.Sprintf("ip link set %s mtu %d", n.port(b, a), bytes))
}

// rate sets that of a link, at both ends, in Mbit/s.
func (n *wrongNetwork) rate(a, b string, mbit float64, limit int) {
	n.Helper()
	for _, e := range [][2]string{{a, b}, {b, a}} {
		n.shell(e[0], fmt.Sprintf("tc qdisc change dev %s root handle 1: tbf rate %gmbit burst 3200 limit %d", n.port(e[0], e[1]), mbit, limit))
	}
}

// drop has nodes drop what a rule of nftables matches.
func drop(hook, match string, nodes ...string) func(*wrongNetwork) {
	return func(n *wrongNetwork) {
		n.each("nft add table ip wrong && nft 'add chain ip wrong c { type filter hook "+hook+" priority 0; }' && nft add rule ip wrong c "+match+" drop", nodes...)
	}
}

func undrop(nodes ...string) func(*wrongNetwork) {
	return func(n *wrongNetwork) { n.each("nft delete table ip wrong", nodes...) }
}

// noDecap takes from switches what takes outer headers off: a device, or programs.
func noDecap(nodes ...string) func(*wrongNetwork) {
	return func(n *wrongNetwork) {
		n.each(`ip link del weft-decap0 2>/dev/null || true`, nodes...)
		for _, s := range nodes {
			n.do(s, func() (err error) {
				for i := range n.lab.Config.Topology.Ports(n.node(s).ID) {
					err = errors.Join(err, detach(fmt.Sprintf("p%d", i), func(name string) bool { return name == "weft_decap" }, ingress))
				}
				return err
			})
		}
	}
}

// strictly sets reverse path filters to strict, and loosely to what the plan says.
func strictly(nodes ...string) func(*wrongNetwork) {
	return func(n *wrongNetwork) {
		n.each(`for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 1 > $f; done`, nodes...)
	}
}

func loosely(nodes ...string) func(*wrongNetwork) {
	return func(n *wrongNetwork) {
		n.each(`for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done`, nodes...)
	}
}

var (
	pod0  = []string{"a0.2", "a0.3"}
	wrong = []misconfigured{
		{name: "wrong topology, of another size", config: "topology: fat-tree:k=6\n",
			says: []string{"topology: fat-tree:k=6 is not this fabric"}},
		{name: "wrong topology, of another kind", config: "topology: leaf-spine:leaves=8,spines=4,hosts=4\n",
			says: []string{"topology: leaf-spine:leaves=8,spines=4,hosts=4 is not this fabric"}},
		{name: "address of another rack", config: "address: 10.1.0.2\n", says: []string{"address: 10.1.0.2 is not on this machine"}, refused: true},
		{name: "addresses of two racks", says: []string{"10.0.0.2 and 10.1.0.3 are both hosts of fat-tree:k=4; say which one is meant"}, refused: true,
			damage: func(n *wrongNetwork) { n.shell("h0.0.2", "ip address add 10.1.0.3/32 dev p0") },
			heal:   func(n *wrongNetwork) { n.shell("h0.0.2", "ip address del 10.1.0.3/32 dev p0") }},
		{name: "half the spines do not decapsulate", says: []string{"not by c1.1, c1.2", "no boomerang comes home from there"},
			damage: noDecap("c1.1", "c1.2"),
			heal:   func(n *wrongNetwork) { n.asPlanned("c1.1", "c1.2") }},
		{name: "a firewall on protocol 4", damage: drop("forward", "ip protocol 4", "e0.0"), heal: undrop("e0.0"),
			says: []string{"something filters protocol 4", "packets go plain"}},
		{name: "a firewall on protocol 4, later", later: drop("forward", "ip protocol 4", "e0.0"), heal: undrop("e0.0"),
			says: []string{"something filters protocol 4", "packets go plain"}},
		{name: "MTU 1400 in the way", damage: func(n *wrongNetwork) { n.mtu("e0.0", "a0.2", 1400) },
			heal: func(n *wrongNetwork) {
				n.mtu("e0.0", "a0.2", 1500)
				n.shell("h0.0.2", "ip route flush cache")
			},
			says: []string{"a link on the way has a smaller MTU"}},
		{name: "MTU 1400 in the way, ICMP dropped", damage: func(n *wrongNetwork) {
			n.mtu("e0.0", "a0.2", 1400)
			drop("output", "ip protocol icmp", "e0.0", "a0.2")(n)
		},
			heal: func(n *wrongNetwork) {
				n.mtu("e0.0", "a0.2", 1500)
				undrop("e0.0", "a0.2")(n)
			},
			says: []string{"a link on the way has a smaller MTU"}},
		{name: "strict rp_filter on the host, before", damage: strictly("h0.0.2", "h3.1.3"), heal: loosely("h0.0.2", "h3.1.3"),
			says: []string{"rp_filter of p0 is strict"}},
		{name: "strict rp_filter on the host, later", later: strictly("h0.0.2", "h3.1.3"), heal: loosely("h0.0.2", "h3.1.3"),
			says: []string{"repaired: setting net.ipv4.conf.p0.rp_filter"}},
		{name: "strict rp_filter on switches", damage: strictly(pod0...), heal: loosely(pod0...),
			says: []string{"rp_filter is strict at a switch", "packets go plain"}},
		{name: "wrong key", config: "failures:\n  keys:\n  - {id: 1, key_file: KEYS}\n", says: []string{"updates are refused", "failures.keys are not the switches'"}},
		{name: "wrong gateway", config: "gateway: 10.0.0.77\n", says: []string{"gateway", "10.0.0.77"}, refused: true},
		{name: "a link at a tenth of its rate, luopan", config: "topology: fat-tree:k=4,host-rate=20,fabric-rate=20,core-rate=20\n",
			modes:  []string{"mode: gateway\npolicy: luopan\n", "mode: offload\npolicy: luopan\nreceivers_resequence: true\n"},
			damage: func(n *wrongNetwork) { n.rate("a0.2", "c1.1", 2, 7500) }, heal: func(n *wrongNetwork) { n.rate("a0.2", "c1.1", 20, 75000) }},
		{name: "a link at a tenth of its rate", both: []string{"less by c1.1: slow: for a second every probe from there took at least"},
			damage: func(n *wrongNetwork) { n.rate("a0.2", "c1.1", 2, 7500) }, heal: func(n *wrongNetwork) { n.rate("a0.2", "c1.1", 20, 75000) }},
	}
)

const (
	wrongFlows   = 8
	wrongSettle  = 1500 * time.Millisecond // until a flow is past its start
	wrongWindow  = 2 * time.Second
	wrongWindows = 4 // tried until one is good: "within a few seconds"
	// wrongShare is what goodput must be of the plain kernel's. The outer header takes
	// 1.4 %; the rest is noise: windows of two seconds, losses at full queues, and a
	// machine that others use.
	wrongShare = 0.8
)

// flows send from a host to another all the time, and say how much has arrived of
// each.
func (n *wrongNetwork) flows(from, to string) (got []*atomic.Int64, end func()) {
	n.Helper()
	var conns []net.Conn
	for range wrongFlows {
		p := n.connect(from, to)
		c := new(atomic.Int64)
		got, conns = append(got, c), append(conns, p.a, p.b)
		go func() {
			buf := make([]byte, 64<<10)
			for {
				if _, err := p.a.Write(buf); err != nil {
					return
				}
			}
		}()
		go func() {
			buf := make([]byte, 64<<10)
			for {
				k, err := p.b.Read(buf)
				if c.Add(int64(k)); err != nil {
					return
				}
			}
		}()
	}
	return got, func() {
		for _, c := range conns {
			if c, ok := c.(*net.TCPConn); ok {
				c.SetLinger(0)
			}
			c.Close()
		}
	}
}

// goodput is that of some flows in Mbit/s, in the first of some windows in which it
// reaches enough, or in the best of these; and the slowest flow's there.
func (n *wrongNetwork) goodput(from, to string, enough float64) (all, slowest float64) {
	n.Helper()
	got, end := n.flows(from, to)
	defer end()
	time.Sleep(wrongSettle)
	for range wrongWindows {
		began, before := time.Now(), make([]int64, len(got))
		for i, g := range got {
			before[i] = g.Load()
		}
		time.Sleep(wrongWindow)
		took := time.Since(began).Seconds()
		sum, least := 0.0, -1.0
		for i, g := range got {
			r := float64(g.Load()-before[i]) * 8 / took / 1e6
			if sum += r; least < 0 || r < least {
				least = r
			}
		}
		if sum > all {
			all, slowest = sum, least
		}
		if all >= enough {
			break
		}
	}
	return all, slowest
}

// words are all that the daemon says of itself.
func (c *child) words() (log, status string) {
	select {
	case <-c.exited:
		return c.messages(), ""
	default:
	}
	b, err := json.Marshal(c.status())
	if err != nil {
		c.n.Fatal(err)
	}
	return c.messages(), string(b)
}

// leastShare is what is asked of the goodput: on a machine that does other things, too,
// that it is no black hole.
func leastShare() float64 {
	if slowtest.Long() {
		return wrongShare
	}
	return 0.3
}

// oftenWrong are those that always run, besides what is refused.
var oftenWrong = []string{"half the spines do not decapsulate", "a firewall on protocol 4, later", "MTU 1400 in the way, ICMP dropped"}

// TestMisconfigured has operators get wrong what they do get wrong: in each case
// traffic flows as the plain kernel's does in the same network, and status or log
// names the cause.
func TestMisconfigured(t *testing.T) {
	slowtest.Unraced(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip(err)
	}
	n := &wrongNetwork{network: newNetwork(t, "w", func(c *lab.Config) { c.RateMbit, c.BurstBytes, c.QueueBytes = 20, 3200, 75000 })}
	for i := range n.keys {
		file := filepath.Join(n.dir, fmt.Sprintf("key%d", i))
		if err := os.WriteFile(file, []byte(strings.Repeat(string(rune('B'+i)), 42)+"A="), 0o644); err != nil {
			t.Fatal(err)
		}
		n.keys[i] = file
	}
	healthy, _ := n.goodput("h0.0.2", "h3.1.3", 18)
	t.Logf("the plain kernel, nothing wrong: %.1f Mbit/s", healthy)
	for _, m := range wrong {
		t.Run(m.name, func(t *testing.T) {
			if !m.refused && !slices.Contains(oftenWrong, m.name) && !slowtest.Long() {
				t.Skip("takes a while: WEFT_TESTS=long runs it")
			}
			m.try(&wrongNetwork{n.of(t), n.keys})
		})
	}
}

func (m misconfigured) try(n *wrongNetwork) {
	if m.heal != nil && m.later == nil {
		defer m.heal(n)
	}
	if m.damage != nil {
		m.damage(n)
	}
	if strings.Contains(m.config, "KEYS") {
		a := n.agent("e0.0")
		defer a.end(syscall.SIGTERM)
	}
	plain, slow := n.goodput("h0.0.2", "h3.1.3", 18)
	n.Logf("plain: %.1f Mbit/s, slowest flow %.2f, mean %.2f", plain, slow, plain/wrongFlows)
	peer := n.start("h3.1.3", "policy: presto\n")
	defer peer.end(syscall.SIGTERM)
	modes := m.modes
	if modes == nil {
		modes = wrongModes
	}
	for _, mode := range modes {
		name := strings.Join(strings.Fields(mode), " ")
		config := mode + strings.ReplaceAll(m.config, "KEYS", n.keys[1])
		if m.refused {
			said := n.fail("h0.0.2", config)
			m.wants(n, name, said)
		} else {
			c := n.start("h0.0.2", config)
			if m.later != nil {
				m.later(n)
			}
			all, slow := n.goodput("h0.0.2", "h3.1.3", wrongShare*plain)
			ratio := all / plain
			n.Logf("%s: %.1f Mbit/s, slowest flow %.2f; of plain %.2f", name, all, slow, ratio)
			if least := leastShare(); ratio < least {
				n.Errorf("%s: goodput is %.1f Mbit/s, and the plain kernel's %.1f", name, all, plain)
			}
			log, status := c.words()
			m.wants(n, name, log+"\n"+status)
			m.wantsBoth(n, name, log, status)
			if m.later != nil {
				m.heal(n)
			}
			c.end(syscall.SIGTERM)
		}
	}
}

// wants looks for the words.
func (m misconfigured) wants(n *wrongNetwork, name, said string) {
	n.Helper()
	for _, w := range m.says {
		if !strings.Contains(said, w) {
			n.Errorf("%s: neither log nor status say %q", name, w)
		}
	}
	if n.Failed() || os.Getenv("WEFT_WORDS") != "" {
		n.Logf("%s: it says\n%s", name, said)
	}
}

// wantsBoth looks for the words in both; and where nothing is said to be slow, for
// nothing that is called so.
func (m misconfigured) wantsBoth(n *wrongNetwork, name, log, status string) {
	n.Helper()
	for _, w := range m.both {
		if !strings.Contains(log, w) || !strings.Contains(status, w) {
			n.Errorf("%s: log or status do not say %q; they say\n%s\n%s", name, w, log, status)
		}
	}
	if s := "less by "; !m.slow() && (strings.Contains(log, s) || strings.Contains(status, s)) {
		n.Errorf("%s: something is called slow; log and status say\n%s\n%s", name, log, status)
	}
}

// slow reports whether a link of the case is.
func (m misconfigured) slow() bool { return strings.HasPrefix(m.name, "a link at a tenth of its rate") }

// agent runs weft switch on a switch, with a key.
func (n *wrongNetwork) agent(node string) *child {
	n.Helper()
	c := n.launch(node, "configure: false\nroutes: false\nkeys:\n- {id: 1, key_file: "+n.keys[0]+"}\n", childSwitch+"=1")
	c.waitFor("hellos every")
	return c
}
