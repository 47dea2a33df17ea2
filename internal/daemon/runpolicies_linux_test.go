package daemon

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/slowtest"
	"weft/lab"
	"weft/policy"
)

// byLabels builds a lab whose switches forward by labels, too, and meter.
func byLabels(c *lab.Config) { c.SRv6, c.Meter = true, &lab.Meter{} }

// reload gives a daemon another configuration, which it must accept.
func (c *child) reload(config, says string) {
	c.n.Helper()
	c.write(config)
	c.cmd.Process.Signal(syscall.SIGHUP)
	c.waitFor(says)
}

// eventually asks for the status until it is as wanted.
func (c *child) eventually(what string, ok func(status map[string]string) bool) {
	c.n.Helper()
	var s map[string]string
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if s = c.status(); ok(s) {
			return
		}
		if time.Now().After(end) {
			c.n.Fatalf("%s: does not happen: %s; status %v\n%s", c.node, what, s, c.messages())
		}
	}
}

// number is a counter of a status, 0 if it has none.
func number(s map[string]string, name string) int {
	n, _ := strconv.Atoi(s[name])
	return n
}

// has reports whether a status has the section of a field: dataplane of
// dataplane.egress.too_long.
func has(s map[string]string, field string) bool {
	section, _, _ := strings.Cut(field, ".")
	for name := range s {
		if strings.HasPrefix(name, section+".") {
			return true
		}
	}
	return false
}

// One policy after the other, on a signal, while a connection lives; by each carrier
// and in each mode. Between racks everything is encapsulated, nothing is lost to a
// wrong length, and what goes by congestion says what it knows. An ordinary run has each
// policy but luopan by one carrier in each mode, the other one in the other mode; a long run
// has all by both.
func TestRun_everyPolicy(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "p", byLabels)
	before := n.configuration("h0.0.2")
	for m, mode := range []string{ModeGateway, ModeOffload} {
		for e, encapsulation := range []string{EncapIPIP, EncapSRv6} {
			t.Run(mode+" "+encapsulation, func(t *testing.T) {
				n := n.of(t)
				base := fmt.Sprintf("mode: %s\nencapsulation: %s\nreceivers_resequence: true\n", mode, encapsulation)
				if mode == ModeOffload {
					base += "resequence: false\n" // or ecmp begins without, and flowcells need a restart
				}
				a := n.start("h0.0.2", base+"policy: ecmp\n")
				b := n.start("h3.1.3", fmt.Sprintf("encapsulation: %s\npolicy: drb\n", encapsulation))
				c := n.connect("h0.0.2", "h3.1.3")
				for i, name := range policy.Names()[1:] {
					if !slowtest.Long() && name != "luopan" && (m+e+i)%2 > 0 {
						continue // luopan's samples are what the peer is asked for below
					}
					config := base + "policy: " + name + "\n"
					if _, err := parse([]byte(config), "f"); err != nil {
						continue // not in this mode
					}
					says := "policy " + name + "\n"
					if name == policy.Default {
						says = "policy " + name + " (" // and its unit
					}
					a.reload(config, says)
					c.exchange(200_000)
					s := a.status()
					if s["policy"] != name || s["encapsulation"] != encapsulation {
						t.Errorf("%s: status %v", name, s)
					}
					for _, field := range []string{"offload.too_long", "offload.malformed", "offload.no_path", "dataplane.egress.malformed", "dataplane.egress.too_long", "dataplane.ingress.malformed"} {
						if v := s[field]; v != "0" && has(s, field) {
							t.Errorf("%s: %s is %q", name, field, v)
						}
					}
					a.knowsOf(name, func() { c.exchange(100_000) })
				}
				if s := b.status(); number(s, "samples.peers_answered") == 0 || number(s, "samples.peers_refused") != 0 {
					t.Errorf("the peer has answered %s samples and refused %s", s["samples.peers_answered"], s["samples.peers_refused"])
				}
				a.end(syscall.SIGTERM)
				c.exchange(100_000)
				b.end(syscall.SIGTERM)
			})
		}
	}
	n.wantUnchanged("h0.0.2", before)
}

// knowsOf waits until a daemon with traffic knows what its policy wants to know.
func (c *child) knowsOf(name string, traffic func()) {
	c.n.Helper()
	switch name {
	case "luopan":
		c.eventually("samples decide", func(s map[string]string) bool {
			traffic()
			return s["congestion.0.rack"] == "e3.1" && s["congestion.0.metric"] == "queue" && s["congestion.0.paths.3.path"] == "3" &&
				number(s, "samples.table.answers") > 10 && number(s, "samples.decided") > 0 && number(s, "offload.chosen") > 0
		})
	case "conga":
		c.eventually("loads are known", func(s map[string]string) bool {
			traffic()
			return s["congestion.0.rack"] == "e3.1" && s["congestion.0.tags.0.paths.0"] != ""
		})
	default:
		for field := range c.status() {
			if strings.HasPrefix(field, "congestion.") {
				c.n.Errorf("%s: says %s", name, field)
			}
		}
	}
}
