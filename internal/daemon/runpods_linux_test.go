package daemon

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/lab"
)

// Containers of four hosts exchange data through masquerading and by addresses that the fabric
// routes, with connection tracking, a firewall and programs of others at the uplinks. Their packets
// take all paths alike.
func TestRun_containers(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "p", func(*lab.Config) {})
	all := n.addContainers()
	ways := []struct {
		name    string
		connect func(*network, container, container) *pair
	}{{"masqueraded", (*network).masqueraded}, {"routed", (*network).routed}}
	const bytes = 3_000_000
	if slowtest.Long() { // to compare with
		for _, w := range ways {
			n.Logf("%-40s by core switch: %.1f %%", "kernel ECMP, "+w.name, n.shares(func() {
				n.exchangeAll(all, func(a, b container) *pair { return w.connect(n, a, b) }, bytes)
			}))
		}
	}
	for _, c := range []struct {
		name, config string
		foreign      string // when programs of others come to the uplinks
	}{
		{"drb", "mode: auto\npolicy: drb\n", "later"},
		{"drb in order", "mode: offload\npolicy: drb\nresequence: true\nreceivers_resequence: true\n", ""},
		{"presto", "mode: auto\npolicy: presto\n", "before"},
		{"gateway", "mode: gateway\npolicy: presto\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := n.of(t)
			if c.foreign == "before" {
				n.addForeign(t, link.Head())
			}
			invalid := n.invalid()
			daemons := make(map[string]*child)
			for _, h := range podHosts {
				daemons[h] = n.start(h, c.config+podPrefixes(n))
			}
			for _, h := range podHosts {
				n.until(daemons[h], "proved", func(s map[string]string) bool { return s["reach.plain"] == "0" })
			}
			runs := []string{c.foreign}
			if c.foreign == "later" {
				runs = []string{"", "later"}
			}
			for _, foreign := range runs {
				if foreign == "later" {
					n.addForeign(t, link.Head())
					for _, h := range podHosts {
						daemons[h].waitFor("moved weft-spray to the front")
					}
				}
				for _, w := range ways {
					shares := n.shares(func() {
						n.exchangeAll(all, func(a, b container) *pair { return w.connect(n, a, b) }, bytes)
					})
					n.Logf("%-40s by core switch: %.1f %%", fmt.Sprintf("%s, %s, others' programs: %q", c.name, w.name, foreign), shares)
					off := 3.0 // a flowcell is two percent of what one connection sends
					if strings.HasPrefix(c.name, "drb") {
						off = 0.5
					}
					for _, share := range shares {
						if share < 25-off || share > 25+off {
							t.Errorf("%s: shares %.1f %%, want 25 each", w.name, shares)
							break
						}
					}
				}
			}
			for _, h := range podHosts {
				s := daemons[h].status()
				if s["offload.too_long"] != "0" || s["offload.no_path"] != "0" || s["offload.refused"] != "0" || s["offload.malformed"] != "0" {
					t.Errorf("%s: %v", h, s)
				}
				if forwarded, _ := strconv.Atoi(s["offload.forwarded"]); forwarded < 4 {
					t.Errorf("%s: %d connections forwarded", h, forwarded)
				}
				n.Logf("%s: %s connections forwarded, too long %q; diverted %q, over budget %q", h, s["offload.forwarded"], s["offload.forwarded_long"], s["order.diverted"], s["order.over_budget"])
				diverted, err := strconv.Atoi(s["order.diverted"])
				over, _ := strconv.Atoi(s["order.over_budget"])
				if restores := err == nil; restores && over*20 >= diverted {
					t.Errorf("%s: the order of containers' connections is not restored: diverted %s, over budget %s", h, s["order.diverted"], s["order.over_budget"])
				} else if !restores && c.name != "drb" && c.name != "gateway" {
					t.Errorf("%s: no order is restored", h)
				}
				if own := s["behind.0.own"]; own != "true" || s["behind.3.rack"] == "" {
					t.Errorf("%s: what is behind hosts: %v", h, s)
				}
			}
			if now := n.invalid(); now != invalid {
				t.Errorf("packets that connection tracking takes for invalid: %v, and %v before", now, invalid)
			}
			n.others(all, true, c.name == "gateway")
			n.killed(all, daemons, c.config)
			for _, d := range daemons {
				d.end(syscall.SIGTERM)
			}
			n.others(all, false, false)
		})
	}
}

// until waits for a daemon's status.
func (n *network) until(c *child, what string, ok func(map[string]string) bool) {
	n.Helper()
	kerneltest.Within(n.T, kerneltest.Patience, c.node+": "+what, func() bool { return ok(c.status()) })
}

// addForeign attaches programs of others at the uplinks, for the rest of the test: one that counts
// nothing and goes on in front of or behind weft's, and, where it does weft no harm, one behind that
// ends the chain as Cilium's does.
func (n *network) addForeign(t *testing.T, at link.Anchor) {
	t.Helper()
	next, end := kerneltest.ForeignProgram(t, "counts", kerneltest.TCXNext), kerneltest.ForeignProgram(t, "cil_to_netdev", kerneltest.TCXEnd)
	for _, h := range podHosts {
		n.do(h, func() error {
			port, err := netlink.LinkByName("p0")
			if err != nil {
				return err
			}
			for _, hook := range []ebpf.AttachType{ebpf.AttachTCXEgress, ebpf.AttachTCXIngress} {
				kerneltest.AttachForeign(t, port, hook, next, at)
				kerneltest.AttachForeign(t, port, hook, end, link.Tail())
				t.Cleanup(func() {
					n.do(h, func() error {
						kerneltest.DetachForeign(port, hook, next)
						return kerneltest.DetachForeign(port, hook, end)
					})
				})
			}
			return nil
		})
	}
}

// mssOf is how much TCP sends at once.
func mssOf(n *network, c net.Conn) (mss int) {
	n.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { mss, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) })
	}
	if err != nil || mss == 0 {
		n.Fatalf("MSS %d, %v", mss, err)
	}
	return mss
}

// others has containers exchange data with those that are reached in other ways. sprayed says that
// the first one's packets are sprayed. In mode gateway the other end's MSS is its own if it runs no weft:
// packets to it are too long, and go plain.
func (n *network) others(all []container, sprayed, gateway bool) {
	n.Helper()
	a, own := all[0], podHosts[all[0].host]
	plain := "h2.1.3" // without a daemon
	address := func(host string) string { return n.node(host).Addr.String() + ":0" }
	for _, p := range []*pair{
		n.link([2]string{own, plain}, a.ns, "", n.nsOf(plain), address(plain), address(plain)),
		n.link([2]string{plain, own}, n.nsOf(plain), "", a.ns, ":80", net.JoinHostPort(n.node(own).Addr.String(), a.published())),
		n.link([2]string{plain, own}, n.nsOf(plain), "", a.ns, a.routed()+":0", a.routed()+":0"),
		n.link([2]string{own, own}, a.ns, "", n.nsOf(own), address(own), address(own)),
		n.link([2]string{own, own}, a.ns, "", all[1].ns, all[1].inside()+":0", all[1].inside()+":0"),
		n.link([2]string{own, podHosts[1]}, a.ns, "", n.nsOf(podHosts[1]), address(podHosts[1]), address(podHosts[1])),
		n.link([2]string{podHosts[1], own}, n.nsOf(podHosts[1]), "", a.ns, a.routed()+":0", a.routed()+":0"),
	} {
		p.exchange(300_000)
		if p.ends[0] == p.ends[1] || !sprayed || gateway && slices.Contains(p.ends[:], plain) {
			continue
		}
		for _, c := range []net.Conn{p.a, p.b} {
			if mss := mssOf(n, c); mss > 1440 {
				n.Errorf("%v: %v sends %d bytes at once, which leaves no room for the outer header", p.ends, c.LocalAddr(), mss)
			}
		}
	}
	n.datagrams(a, all[3])
}

// datagrams has a container send UDP to another, and the other way, of a size that fits with the
// outer header and of one that does not, which its kernel cuts into fragments.
func (n *network) datagrams(a, b container) {
	n.Helper()
	var to, from net.PacketConn
	n.in(b.ns, func() (err error) { to, err = net.ListenPacket("udp4", b.routed()+":0"); return err })
	defer to.Close()
	n.in(a.ns, func() (err error) { from, err = net.ListenPacket("udp4", a.routed()+":0"); return err })
	defer from.Close()
	for _, size := range []int{1200, 1472, 4000} {
		payload := []byte(strings.Repeat("u", size))
		ok := false
		for range 20 { // the first may be lost while the path's MTU becomes known
			from.WriteTo(payload, to.LocalAddr())
			got := make([]byte, 5000)
			to.SetReadDeadline(time.Now().Add(time.Second))
			if k, sender, err := to.ReadFrom(got); err == nil && k == size && sender.String() == from.LocalAddr().String() {
				ok = true
				break
			}
		}
		if !ok {
			n.Errorf("a datagram of %d bytes does not arrive", size)
		}
	}
}

// killed kills a daemon during transfers of what is behind its host, and starts it again.
func (n *network) killed(all []container, daemons map[string]*child, config string) {
	n.Helper()
	h := podHosts[0]
	pairs := []*pair{n.masqueraded(all[0], all[2]), n.masqueraded(all[4], all[0]), n.routed(all[1], all[6]), n.routed(all[3], all[1])}
	stop := make(chan struct{})
	done := make(chan int, len(pairs))
	for _, p := range pairs {
		go func() {
			rounds := 0
			defer func() { done <- rounds }()
			for {
				select {
				case <-stop:
					return
				default:
					p.exchange(200_000)
					rounds++
				}
			}
		}()
	}
	for range 2 {
		daemons[h].end(syscall.SIGKILL)
		daemons[h] = n.start(h, config+podPrefixes(n))
		n.until(daemons[h], "proved", func(s map[string]string) bool { return s["reach.plain"] == "0" })
	}
	close(stop)
	for range pairs {
		if rounds := <-done; rounds == 0 && !n.Failed() {
			n.Error("a transfer did not go on")
		}
	}
}
