package daemon

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weft/hedera/store/storetest"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/mesh"
)

// meshPort is where a host's namespace has etcd.
const meshPort = "127.0.0.1:2379"

// bring has what a host sends to an address of its own loopback interface arrive at another
// address, of the test's namespace.
func (n *network) bring(node, at, to string) {
	n.Helper()
	var l net.Listener
	n.do(node, func() (err error) {
		l, err = net.Listen("tcp4", at)
		return err
	})
	n.Cleanup(func() { l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer a.Close()
				b, err := net.Dial("tcp4", to)
				if err != nil {
					return
				}
				go func() {
					defer b.Close()
					io.Copy(b, a)
				}()
				io.Copy(a, b)
			}()
		}
	}()
}

// member runs the daemon of a host with the address 10.9.0.I in the mesh.
func (n *network) member(node string, i int) *child {
	n.Helper()
	return n.start(node, fmt.Sprintf(`encapsulation: udp
tun:
  addresses: [10.9.0.%d/32]
udp:
  name: %s
  encryption: aes-gcm
  directory: etcd://%s/weft/mesh/test
  renew: 2s
  within: [10.9.0.0/24]
  ttl: 2s
`, i, node, meshPort), "STATE_DIRECTORY="+filepath.Join(n.dir, node+".state"))
}

// meshed waits until a status has a value.
func (c *child) meshed(field string, ok func(value string) bool) {
	c.n.Helper()
	var last map[string]string
	defer func() {
		if c.n.Failed() {
			c.n.Logf("%s: %v", c.node, last)
		}
	}()
	kerneltest.Within(c.n, kerneltest.Patience, c.node+": "+field, func() bool {
		last = c.status()
		return ok(last[field])
	})
}

// intrude registers somebody who wants what others have, and all the rest.
func (n *network) intrude(etcd *storetest.Cluster) {
	n.Helper()
	m := mesh.Member{Name: "mallory", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.66:5740")},
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/32"), netip.MustParsePrefix("128.0.0.0/1")}, Keys: []mesh.PublicKey{mesh.NewPrivateKey(0).Public()}}
	b, err := m.Encode()
	if err == nil {
		_, err = etcd.Client().Put(n.Context(), fmt.Sprintf("/weft/mesh/test/members/%x", m.Name), string(b))
	}
	if err != nil {
		n.Fatal(err)
	}
}

func is(want string) func(string) bool { return func(v string) bool { return v == want } }

func above(least int) func(string) bool {
	return func(v string) bool {
		n, err := strconv.Atoi(v)
		return err == nil && n > least
	}
}

// Three daemons find each other on etcd. One comes and one leaves, keys are renewed, etcd goes
// away and comes back, and one is killed and begins again with the key that it has kept.
// Connections between those that stay are never lost.
func TestRun_mesh(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	etcd := storetest.New(t, 1)
	hosts := []string{"h0.0.2", "h1.0.2", "h3.1.3"}
	for _, h := range hosts {
		n.bring(h, meshPort, etcd.Endpoints()[0])
	}
	before := n.configuration(hosts[0])
	routes := func() string { return n.shell(hosts[0], "ip route show table 5740") }

	a, b := n.member(hosts[0], 1), n.member(hosts[1], 2)
	a.meshed("mesh.peers", is("1"))
	b.meshed("mesh.peers", is("1"))
	kept := n.connectAddrs(hosts[0], hosts[1], "10.9.0.2")
	kept.exchange(300_000)

	c := n.member(hosts[2], 3)
	for _, d := range []*child{a, b, c} {
		d.meshed("mesh.peers", is("2"))
	}
	n.connectAddrs(hosts[0], hosts[2], "10.9.0.3").exchange(100_000)
	n.connectAddrs(hosts[2], hosts[1], "10.9.0.2").exchange(100_000)
	if r := routes(); !strings.Contains(r, "10.9.0.2 dev weft0") || !strings.Contains(r, "10.9.0.3 dev weft0") {
		t.Errorf("routes: %s", r)
	}

	a.cmd.Process.Signal(syscall.SIGHUP)
	a.waitFor("reloaded")
	etcd.Kill(0)
	a.meshed("mesh.following", is("false"))
	kept.exchange(100_000)
	etcd.Start(0)
	a.meshed("mesh.following", is("true"))
	for _, d := range []*child{a, b, c} {
		d.meshed("mesh.renewed", above(0))
		kept.exchange(50_000)
	}

	a.end(syscall.SIGKILL)
	if key, err := os.ReadFile(filepath.Join(n.dir, hosts[0]+".state", "mesh.key")); err != nil || !strings.Contains(string(key), ":") {
		t.Errorf("no renewed key is kept: %v", err)
	}
	a = n.member(hosts[0], 1)
	a.meshed("mesh.peers", is("2"))
	a.meshed("mesh.registered", is("true"))
	if m := a.messages(); strings.Contains(m, "another host is registered by this name") {
		t.Errorf("it has lost its name:\n%s", m)
	}
	b.meshed("mesh.refused", is("0"))
	n.connectAddrs(hosts[0], hosts[1], "10.9.0.2").exchange(100_000)
	kept.exchange(50_000)

	n.intrude(etcd)
	for _, why := range []string{"10.9.0.2/32 overlaps what is behind h1.0.2", "128.0.0.0/1 is not within"} {
		a.waitFor("the registration of mallory does not count, or not all of it: " + why)
	}
	kept.exchange(50_000)

	c.end(syscall.SIGTERM)
	a.meshed("mesh.peers", is("1"))
	a.waitFor("peer h3.1.3 is gone")
	if r := routes(); strings.Contains(r, "10.9.0.3") || strings.Contains(r, "128.0.0.0") {
		t.Errorf("routes to who is gone, or was never taken: %s", r)
	}
	kept.exchange(50_000)
	for _, d := range []*child{a, b} {
		s := d.status()
		for _, why := range []string{"forged", "replayed", "malformed"} {
			if v := s["dataplane.tunnel."+why]; v != "0" {
				t.Errorf("%s: %s datagrams are %s", d.node, v, why)
			}
		}
		d.end(syscall.SIGTERM)
	}
	n.wantUnchanged(hosts[0], before)
}
