package daemon

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// received returns how many packets a host's TUN has given to its kernel.
func (n *network) received(node string) int {
	n.Helper()
	count, err := strconv.Atoi(strings.TrimSpace(n.shell(node, "cat /proc/thread-self/net/dev | awk '/weft0:/ {print $3}'")))
	if err != nil {
		n.Fatal(err)
	}
	return count
}

// Packets come in by devices that the way back does not lead through: whatever
// the administrator's reverse path filter is, they must not be lost, and it must
// be put back.
func TestRun_gatewayWithReversePathFilters(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t, "g")
	for _, filters := range [][2]int{{1, 1}, {2, 1}, {0, 1}, {1, 0}} {
		set := fmt.Sprintf("sysctl -qw net.ipv4.conf.all.rp_filter=%d net.ipv4.conf.p0.rp_filter=%d", filters[0], filters[1])
		n.shell("h0.0.2", set)
		n.shell("h3.1.3", set)
		before := n.configuration("h0.0.2")
		a := n.start("h0.0.2", "policy: presto\n", childRelay+"=1")
		b := n.start("h3.1.3", "policy: presto\n", childRelay+"=1")
		n.connect("h0.0.2", "h3.1.3").exchange(300_000)
		n.shell("h0.0.2", "ping -c 1 -W 5 10.3.1.3")
		if got := n.received("h0.0.2"); got < 10 {
			t.Errorf("filters %v: %d packets by the TUN", filters, got)
		}
		a.end(syscall.SIGTERM)
		b.end(syscall.SIGTERM)
		n.wantUnchanged("h0.0.2", before)
	}
}

// The kernel's TCP leaves without weft; of what arrives, only flows with a hole pass through
// it.
func TestRun_offloadThatResequences(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	const config = "mode: offload\npolicy: presto\nresequence: true\nreceivers_resequence: %v\n"
	a := n.start("h0.0.2", fmt.Sprintf(config, true), dataplanes[1].env)
	b := n.start("h3.1.3", fmt.Sprintf(config, false), dataplanes[1].env)
	// Where the machine is busy, queues stay empty, and little overtakes.
	kerneltest.Within(t, kerneltest.Patience, "flows with a hole at both", func() bool {
		n.connect("h0.0.2", "h3.1.3").exchange(3_000_000)
		return a.status()["order.diverted"] != "0" && b.status()["order.diverted"] != "0"
	})
	for _, c := range []*child{a, b} {
		s := c.status()
		if s["order.straight"] == "0" || s["dataplane.egress.packets"] != "0" {
			t.Errorf("%s: status %v", c.node, s)
		}
		kerneltest.Within(t, kerneltest.Patience, "all flows to be straight", func() bool {
			s = c.status()
			return s["dataplane.handover.flows"] == "0"
		})
		if s["dataplane.handover.diverted"] != s["order.diverted"] || s["dataplane.handover.missed"] != "0" {
			t.Errorf("%s: status %v", c.node, s)
		}
	}
	if strings.Contains(a.messages(), "warning") || !strings.Contains(b.messages(), "warning: policy presto without receivers that restore the order") {
		t.Errorf("messages:\n%s\n%s", a.messages(), b.messages())
	}
	a.end(syscall.SIGTERM)
	b.end(syscall.SIGTERM)
}

// By its defaults a daemon leaves to the kernel what is in order, also beside a host in mode
// gateway, and makes TCP bear what is late for as long as it runs.
func TestRun_auto(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	window := func() string {
		return strings.Join(strings.Fields(n.shell("h0.0.2", "cat /proc/sys/net/ipv4/tcp_min_rtt_wlen /proc/sys/net/ipv4/tcp_tso_rtt_log")), " ")
	}
	before := window()
	a := n.start("h0.0.2", "mode: auto\npolicy: auto\n")
	if w := window(); w != "0 16" || w == before {
		t.Errorf("tcp_min_rtt_wlen and tcp_tso_rtt_log are %s, and were %s", w, before)
	}
	for _, mode := range []string{ModeAuto, ModeGateway} {
		b := n.start("h3.1.3", "mode: "+mode+"\npolicy: auto\n")
		n.connect("h0.0.2", "h3.1.3").exchange(3_000_000)
		s := a.status()
		if s["mode"] != ModeOffload || s["mode_why"] == "" || s["unit"] != "flowcell of 64 KB" || s["order.straight"] == "0" || s["dataplane.egress.packets"] != "0" {
			t.Errorf("beside mode %s: status %v", mode, s)
		}
		b.end(syscall.SIGTERM)
	}
	if !strings.Contains(a.messages(), "auto chooses mode offload: the kernel keeps what is in order") || strings.Contains(a.messages(), "warning") {
		t.Errorf("messages:\n%s", a.messages())
	}
	a.end(syscall.SIGTERM)
	if w := window(); w != before {
		t.Errorf("tcp_min_rtt_wlen and tcp_tso_rtt_log are %s, and were %s", w, before)
	}
}

// A daemon that dies while it holds packets behind a hole takes nothing with it but these,
// which TCP sends again.
func TestRun_orderSurvivesItsReader(t *testing.T) {
	slowtest.System(t)
	n := sharedNetwork(t)
	const config = "mode: offload\npolicy: presto\nresequence: true\nreceivers_resequence: true\n"
	a := n.start("h0.0.2", config, dataplanes[1].env)
	p := n.connect("h0.0.2", "h3.1.3")
	for range slowtest.Choose(5, 50) {
		b := n.start("h3.1.3", config, dataplanes[1].env)
		done, killed := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-killed:
					return
				default:
					p.exchange(300_000)
				}
			}
		}()
		kerneltest.Within(t, kerneltest.Patience, "a hole", func() bool {
			d := b.status()["order.diverted"]
			return d != "" && d != "0"
		})
		b.end(syscall.SIGKILL)
		close(killed)
		<-done
	}
	a.end(syscall.SIGTERM)
	n.do("h3.1.3", func() error {
		_, err := Cleanup()
		return err
	})
}

// Everything for the peers passes through the tunnel, TCP to the very address of
// its end, too; its own datagrams do not.
func TestRun_tunnel(t *testing.T) {
	slowtest.System(t)
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("weft", 8)))
	n := newNetwork(t, "i")
	for _, c := range []struct{ dataplane, env, peer string }{
		{"relay", dataplanes[0].env, ""},
		{"gateway", dataplanes[1].env, ""},
		{"gateway with a key", dataplanes[1].env, "      key: " + key + "\n"},
	} {
		t.Run(c.dataplane, func(t *testing.T) { testTunnel(n.of(t), c.env, c.peer) })
	}
}

func testTunnel(n *network, env, peerKeys string) {
	hosts := []string{"h0.0.2", "h3.1.3"}
	before := make([]string, 2)
	for i, h := range hosts {
		// For weft0 alone: an address of p0's own would come up some time later.
		n.shell(h, "sysctl -qw net.ipv6.conf.default.disable_ipv6=0 net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.p0.disable_ipv6=1 net.ipv4.conf.p0.rp_filter=1")
		before[i] = n.configuration(h)
	}
	config := func(i int) string {
		peer := n.node(hosts[1-i])
		return fmt.Sprintf(`encapsulation: udp
tun:
  addresses: [10.9.0.%d/32, "fd00:9::%d/128"]
udp:
  name: %s
  peers:
    - name: %s
      prefixes: [10.9.0.%d/32, "fd00:9::%d/128", %s/32]
      endpoint: %s:5740
%s`, i+1, i+1, hosts[i], peer.Name, 2-i, 2-i, peer.Addr, peer.Addr, peerKeys)
	}
	var children []*child
	for i, h := range hosts {
		children = append(children, n.start(h, config(i), env))
		if env == dataplanes[0].env { // which sends each packet in one datagram
			n.shell(h, "ip link set weft0 gso_max_segs 1")
		}
	}
	for _, to := range []string{"10.9.0.2", "fd00:9::2", n.node(hosts[1]).Addr.String()} {
		had := n.received(hosts[1])
		n.connectAddrs(hosts[0], hosts[1], to).exchange(300_000)
		if got := n.received(hosts[1]) - had; got < 10 {
			n.Errorf("%s: %d packets by the TUN", to, got)
		}
	}
	n.shell(hosts[0], "ping -c 1 -W 5 10.9.0.2 && ping -c 1 -W 5 fd00:9::2")
	if s := children[0].status(); s["encapsulation"] != "udp" || !strings.HasPrefix(s["devices.tunnel.offloads"], "udp:") {
		n.Errorf("status %v", s)
	}
	for i, c := range children {
		c.end(syscall.SIGTERM)
		n.wantUnchanged(hosts[i], before[i])
	}
}

// Both ends of a tunnel go to other keys by SIGHUP while data flows, and no datagram is
// refused.
func TestRun_tunnelKeysRollOver(t *testing.T) {
	slowtest.System(t)
	s := &soak{chaos: &chaos{network: newNetwork(t, "w")}}
	for end, name := range soakTunnel {
		s.tunnel = append(s.tunnel, s.start(name, s.tunnelConfig(end, "      key: "+secret(1000)+"\n")))
	}
	p := s.connectAddrs(soakTunnel[0], soakTunnel[1], "10.9.0.2")
	done, ended := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				ended <- n
				return
			default:
				p.exchange(100_000)
			}
		}
	}()
	s.rollTunnel()
	s.rollTunnel()
	close(done)
	if n := <-ended; n < 5 {
		t.Errorf("only %d exchanges meanwhile", n)
	}
	for _, c := range s.tunnel {
		c.end(syscall.SIGTERM)
	}
}
