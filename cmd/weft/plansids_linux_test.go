package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/frr"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
	"weft/topology/graph"
)

// planned is a fabric of namespaces in which the switches and hosts are configured by what weft
// plan prints, and by nothing else.
type planned struct {
	g   *graph.Graph
	dir string // of FRR
}

func newPlanned(t *testing.T) *planned {
	t.Helper()
	kerneltest.NeedRoot(t)
	if err := frr.Available(); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(sidsFile)
	if err != nil {
		t.Fatal(err)
	}
	p := &planned{}
	if p.g, err = graph.Parse(text); err != nil {
		t.Fatal(err)
	}
	if p.dir, err = os.MkdirTemp("/tmp", "weft"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(p.dir) })
	if err := os.Chmod(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	names := make(map[graph.NodeID]string)
	for id := range graph.NodeID(p.g.NumNodes()) {
		names[id] = kerneltest.Namespace(t, p.g.Node(id).Name)
	}
	kerneltest.Shell(t, names[0], "ip link add name probe0 type veth peer name probe1 && ip link set probe0 up && ip link set probe1 up")
	if out := kerneltest.Shell(t, names[0], "ip -6 route add fcbb:bbbb::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev probe0 2>&1 || true"); out != "" {
		t.Skipf("no micro-SIDs in this kernel: %s", out)
	}
	kerneltest.Shell(t, names[0], "ip link del probe0")
	for l := range p.g.NumLinks() {
		link := p.g.Link(graph.LinkID(l))
		low, high := p.g.Ends(graph.LinkID(l))
		kerneltest.Shell(t, names[low], fmt.Sprintf("ip link add %s type veth peer name %s netns %s", link.Ports[0], link.Ports[1], names[high]))
	}
	for id, ns := range names {
		kerneltest.Shell(t, ns, "set -e\n"+script(mustWeft(t, "plan", "--topology", sidsFile, "--node", p.g.Node(id).Name)))
		if p.g.Node(id).Tier == 0 {
			continue
		}
		s := frr.Switch{Dir: filepath.Join(p.dir, p.g.Node(id).Name)}
		text := mustWeft(t, "plan", "--for", "frr", "--topology", sidsFile, "--node", p.g.Node(id).Name)
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
		if err := kernel.InNamespace(ns, func() error { _, err := s.Start(text); return err }); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// script leaves out of commands those for IP-in-IP, for which this kernel need not have modules.
func script(commands string) string {
	var kept []string
	for line := range strings.Lines(commands) {
		if !strings.Contains(line, "weft-decap") && !strings.Contains(line, "weft-six-in") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func (p *planned) ns(name string) string { return "weft-" + kerneltest.LabName("n") + "-" + name }

// listen opens a socket for datagrams at a host.
func (p *planned) listen(t *testing.T, host string, at netip.AddrPort) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	err := kernel.InNamespace(p.ns(host), func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// datagram is an IP packet with a UDP datagram to port 7777.
func datagram(src, dst netip.Addr, payload string) []byte {
	udp := make([]byte, 8+len(payload))
	binary.BigEndian.PutUint16(udp, 7777)
	binary.BigEndian.PutUint16(udp[2:], 7777)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	copy(udp[8:], payload)
	if src.Is4() {
		return kerneltest.IPv4{TTL: 64, Protocol: unix.IPPROTO_UDP, Src: src, Dst: dst}.Bytes(udp)
	}
	pseudo := append(append(src.AsSlice(), dst.AsSlice()...), 0, 0, byte(len(udp)>>8), byte(len(udp)), 0, 0, 0, unix.IPPROTO_UDP)
	sum := append(pseudo, udp...)
	binary.BigEndian.PutUint16(udp[6:], ^kerneltest.OnesSum(append(sum, make([]byte, len(sum)%2)...)))
	b := make([]byte, 40, 40+len(udp))
	b[0], b[6], b[7] = 0x60, unix.IPPROTO_UDP, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(udp)))
	copy(b[8:], src.AsSlice())
	copy(b[24:], dst.AsSlice())
	return append(b, udp...)
}

// Switches that only have what weft plan prints for iproute2 and FRR, and on which nothing of
// weft runs, forward packets by an operator's SIDs: each spine takes out IPv4 and IPv6, and
// hands packets on that have a further uN.
func TestPlan_switchesForwardBySIDs(t *testing.T) {
	p := newPlanned(t)
	h1, h2 := p.g.Node(0), p.g.Node(1)
	view, err := topology.FromGraph(p.g, h1.Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CheckSIDs(); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"leaf1", "spine1", "spine2"} {
		for _, to := range []string{"fcbb:bbbb:1:fe04::", "fcbb:bbbb:2:f4::", h2.Addresses[0].String(), h2.Addresses[1].String()} {
			kerneltest.Within(t, kerneltest.Patience, "a route of "+node+" to "+to, func() bool {
				out := kerneltest.Shell(t, p.ns(node), "ip route get "+to+" 2>&1 || true")
				return strings.Contains(out, " dev ") && !strings.Contains(out, "unreachable")
			})
		}
	}
	wire := kerneltest.OpenWire(t, p.ns("h1"), "eth1", p.ns("leaf1"), "Ethernet0")
	src, ok := view.SIDSource()
	if !ok || src != h1.Addresses[1] {
		t.Fatalf("packets come from %v", src)
	}
	set := view.PathsTo(0, h2.Addresses[0])
	if set.Count() != 2 {
		t.Fatalf("%d paths", set.Count())
	}
	for family, dst := range h2.Addresses {
		c := p.listen(t, "h2", netip.AddrPortFrom(dst, 7777))
		send := func(what string, sid4, sid6 netip.Addr) {
			t.Helper()
			o, err := encap.NewSIDOuter(src, sid4, sid6)
			if err != nil {
				t.Fatal(err)
			}
			b := append(make([]byte, encap.MaxOverhead), datagram(h1.Addresses[family], dst, what)...)
			packet, err := o.Encapsulate(b, 1)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 100)
			for end := time.Now().Add(kerneltest.Patience); ; { // the first may be lost while neighbours are looked up
				wire.SendLabelled(t, packet)
				c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				n, from, err := c.ReadFromUDPAddrPort(got)
				if err == nil && string(got[:n]) == what {
					if from.Addr().Unmap() != h1.Addresses[family] {
						t.Errorf("%s comes from %v", what, from)
					}
					return
				}
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) {
					t.Fatalf("%s, to %v and %v: %v", what, sid4, sid6, err)
				}
			}
		}
		for n := range set.Count() {
			sid4, _ := set.SID(n, false)
			sid6, _ := set.SID(n, true)
			before := p.taken(t, set.Name(n), family)
			send(fmt.Sprintf("%v by %s", dst, set.Name(n)), sid4, sid6)
			if after := p.taken(t, set.Name(n), family); after <= before {
				t.Errorf("%s has taken out %d packets to %v, then %d", set.Name(n), before, dst, after)
			}
		}
		send(fmt.Sprintf("%v by spine1, then spine2", dst), netip.MustParseAddr("fcbb:bbbb:1:2:f4::"), netip.MustParseAddr("fcbb:bbbb:1:2:f6::"))
	}
}

// taken returns how many packets of a family a switch has taken out at its SIDs.
func (p *planned) taken(t *testing.T, name string, family int) (sum int) {
	t.Helper()
	id, _ := p.g.ByName(name)
	sid := p.g.Node(id).SIDs.List()[1+family]
	out := kerneltest.Shell(t, p.ns(name), fmt.Sprintf("ip -s -6 route show %v", sid))
	words := strings.Fields(out)
	for i, w := range words {
		if w == "packets" && i+1 < len(words) {
			var n int
			fmt.Sscan(words[i+1], &n)
			sum += n
		}
	}
	return sum
}
