package interop

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/internal/slowtest"
	"weft/lab"
	"weft/stack"
	"weft/topology"
)

// liveStatus is what weft paths --live --json says, as far as the test looks.
type liveStatus struct {
	Policy string             `json:"policy"`
	Racks  []stack.Congestion `json:"racks"`
	Sent   []struct {
		Address   string `json:"address"`
		Flowcells uint64 `json:"flowcells"`
	} `json:"bounces"`
}

func (d *daemon) live(to string) (s liveStatus) {
	d.n.Helper()
	out := d.n.must(d.node, binary(d.n.T), "paths", "--live", "--json", "--to", to)
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		d.n.Fatalf("%v:\n%s", err, out)
	}
	return s
}

// Two hosts choose the emptier path by samples that switches have written, with
// labels, while programs of all kinds run; a spine falls silent, and all go on by
// the others, until it is back.
func TestLuopan_byLabels(t *testing.T) {
	slowtest.System(t)
	const spec = "leaf-spine:leaves=2,spines=3,hosts=2"
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, "k", mediumLinks, func(c *lab.Config) {
		c.Topology, c.SRv6, c.Meter = top, true, &lab.Meter{}
	})
	needs(t, fetchTools...)
	const from, to, spine = "h0.0.2", "h0.1.2", "a0.1"
	before := n.configuration(from)
	const config = "policy: luopan\nencapsulation: srv6\ntopology: " + spec + "\nfailures: {updates: false, interval: 30ms}\n"
	a, b := n.weft(from, config), n.weft(to, config)
	a.findsItsPlace()
	n.run("iperf3", []string{"iperf3"}, func(n *network) {
		server := n.start(to, "iperf3", "-s", "-1", "-B", n.addr(to))
		n.listens(to, "5201")
		n.must(from, "iperf3", "-c", n.addr(to), "-P", "3", "-n", "6M")
		if out, err := server.wait(); err != nil {
			n.Errorf("iperf3: server: %v\n%s", err, out)
		}
	})
	l := traffic{[]*stream{n.stream(from, to)}, []*fetches{n.fetch(from, to)}}
	l.moves("at first")

	var s liveStatus
	n.eventually("samples of every path are known, and flowcells take each", func() bool {
		s = a.live(n.addr(to))
		c := s.Racks[0]
		return len(s.Sent) == 3 && c.Metric == "queue" && c.RTT > 0 && c.Expiry > 0 && len(c.Paths) == 3 &&
			slices.ContainsFunc(c.Paths, func(p stack.PathCongestion) bool { return p.Known && p.Meters == 3 })
	})
	if out := n.must(from, binary(t), "paths", "--live"); !strings.Contains(out, "to e0.1 (10.0.1.0/24): by queue") {
		t.Errorf("weft paths --live:\n%s", out)
	}

	n.fail(spine, lab.FailSilent)
	for _, d := range []*daemon{a, b} {
		d.sees("takes links of "+spine+" for down", func(s hostStatus) bool {
			return len(s.Failures.Down) > 0 && onlyEnd(s.Failures.Down, "-"+spine)
		})
	}
	l.moves("a spine is silent")
	for _, p := range a.live("e0.1").Racks[0].Paths {
		if p.Live == (p.Bounce == n.node(spine).Addr) || p.Best && !p.Live {
			t.Errorf("while %s is silent: %+v", spine, p)
		}
	}
	n.heal()
	n.settles(nil, []*daemon{a, b}, l, "the spine is back")
	l.end()
	for _, d := range []*daemon{a, b} {
		if lost := d.count("offload.too_long") + d.count("offload.malformed") + d.count("samples.peers_refused") + d.count("samples.table.wrong_path"); lost != 0 {
			t.Errorf("%s: status %v", d.node, d.status())
		}
		d.end(syscall.SIGTERM)
	}
	n.wantUnchanged(from, before)
}
