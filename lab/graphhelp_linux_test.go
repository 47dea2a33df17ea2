package lab

import (
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"weft/internal/frr"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
	"weft/topology/graph/operator"
)

// operators returns a computed fabric with an operator's addresses.
func operators(t testing.TB, spec string, seed uint64) *graph.Graph {
	t.Helper()
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	g, err := graph.New(operator.Spec(kerneltest.Topology(t, spec), seed))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// upGraph is upLab for a graph, of which BGP must have found all routes.
func upGraph(t *testing.T, cfg Config) *Lab {
	t.Helper()
	began := time.Now()
	l := upLab(t, cfg)
	t.Logf("up after %v", time.Since(began))
	t.Cleanup(func() {
		for n := range l.Config.nodes() {
			if n.Layer == topology.LayerHost || !t.Failed() {
				continue
			}
			if _, err := os.Stat(routingDir(l.Config.Name)); err != nil {
				break // it was taken down
			}
			if err := l.Routing(n.ID); err != nil {
				t.Errorf("%s: %v", n.Name, err)
			}
			routes, err := l.ShowRouting(n.ID, "show bgp summary", "show ip route", "show ipv6 route")
			t.Logf("%s (%v)\n%s", n.Name, err, routes)
		}
	})
	for _, note := range l.Notes {
		if strings.Contains(note, "BGP") {
			t.Error(note)
		}
	}
	return l
}

func (l *Lab) mustLookup(t testing.TB, name string) topology.NodeID {
	t.Helper()
	n, err := l.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return n.ID
}

// addresses returns a host's, of both families.
func (l *Lab) addresses(t testing.TB, host string) []netip.Addr {
	t.Helper()
	return l.Config.Graph.Node(graph.NodeID(l.mustLookup(t, host))).Addresses
}

// connected fails the test if a host cannot say something by TCP to all addresses of
// another one, whose kernel answers from there.
func connected(t *testing.T, l *Lab, from, to string) {
	t.Helper()
	for i, a := range l.addresses(t, to) {
		var server net.Listener
		err := l.Do(l.mustLookup(t, to), func() (err error) {
			server, err = net.Listen("tcp", netip.AddrPortFrom(a, 0).String())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if c, err := server.Accept(); err == nil {
				io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).IP.String())
				c.Close()
			}
		}()
		var said []byte
		err = l.Do(l.mustLookup(t, from), func() error {
			var c net.Conn
			for end := time.Now().Add(kerneltest.Patience); ; time.Sleep(20 * time.Millisecond) {
				// While BGP finds other ways packets may be refused, or run in circles.
				var err error
				if c, err = net.DialTimeout("tcp", server.Addr().String(), kerneltest.Patience); err == nil {
					break
				} else if time.Now().After(end) {
					return err
				}
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(kerneltest.Patience))
			var err error
			said, err = io.ReadAll(c)
			return err
		})
		server.Close()
		if want := l.addresses(t, from)[i].String(); err != nil || string(said) != want {
			t.Errorf("%s to %s (%v): heard from %s, want %s (%v)", from, to, a, said, want, err)
		}
	}
}

// waysTo returns how many ways a switch has to both prefixes of a leaf's rack.
func (l *Lab) waysTo(t *testing.T, from, leaf string) (ways [2]int) {
	t.Helper()
	have, err := l.Config.routes(l.mustLookup(t, from))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range l.Config.Graph.Node(graph.NodeID(l.mustLookup(t, leaf))).Prefixes {
		ways[i] = have[p]
	}
	return ways
}

// becomes waits until two leaves have so many ways to each other, of both families. Then
// their hosts reach each other.
func (l *Lab) becomes(t *testing.T, what string, want int) {
	t.Helper()
	kerneltest.Within(t, kerneltest.Patience, what, func() bool {
		return l.waysTo(t, "leaf1", "leaf2") == [2]int{want, want} && l.waysTo(t, "leaf2", "leaf1") == [2]int{want, want}
	})
	connected(t, l, "h1-1", "h2-1")
}
