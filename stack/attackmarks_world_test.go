package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/conga"
	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/stack"
)

// forged is a TCP segment without payload that carries a mark, as anybody may
// write one who has a raw socket.
func forged(from, to netip.AddrPort, m conga.Mark, flags header.TCPFlags, seq, ack uint32) []byte {
	b := make([]byte, 40)
	ip, tcp := header.IPv4(b), header.TCP(b[20:])
	ip.Encode(&header.IPv4Fields{TotalLength: 40, TTL: 64, Protocol: 6, Flags: header.IPv4FlagDontFragment,
		TOS: conga.MarkDSCP << 2, ID: m.Put(), SrcAddr: tcpip.AddrFrom4(from.Addr().As4()), DstAddr: tcpip.AddrFrom4(to.Addr().As4())})
	ip.SetChecksum(^ip.CalculateChecksum())
	tcp.Encode(&header.TCPFields{SrcPort: from.Port(), DstPort: to.Port(), SeqNum: seq, AckNum: ack, DataOffset: 20, Flags: flags, WindowSize: 0xffff})
	sum := header.PseudoHeaderChecksum(6, ip.SourceAddress(), ip.DestinationAddress(), 20)
	tcp.SetChecksum(^checksum.Checksum(b[20:], sum))
	return b
}

// congaFabric has hosts that choose by marks, over switches that write them.
func congaFabric(t *testing.T, seed uint64) *world.World {
	t.Helper()
	w := world.New(world.Config{
		Topology: "fat-tree:k=4", Seed: seed,
		Links: simnet.Config{RateBits: 100e6, Delay: 5 * time.Microsecond, HostQueueBytes: 75_000, Meter: &simnet.Meter{}},
		Hosts: func(_ string, c *stack.Config) {
			c.Policy, c.PolicyOptions.LinkRateBits, c.PolicyOptions.Tau = "conga", 100e6, 2*time.Millisecond
			c.PolicyOptions.FlowletGap = time.Millisecond
		},
	})
	t.Cleanup(w.Close)
	return w
}

// shareOf returns the part of what a host has sent since before that went by a core.
func shareOf(w *world.World, host, core string, before map[netip.Addr]uint64) float64 {
	n, _ := w.Topology().Lookup(core)
	all, by := uint64(0), uint64(0)
	for _, p := range w.Host(host).Stats().Paths {
		d := p.Bytes - before[p.Bounce]
		all += d
		if p.Bounce == n.Addr {
			by = d
		}
	}
	return float64(by) / float64(all)
}

func sentBy(w *world.World, host string) map[netip.Addr]uint64 {
	sent := map[netip.Addr]uint64{}
	for _, p := range w.Host(host).Stats().Paths {
		sent[p.Bounce] = p.Bytes
	}
	return sent
}

// chosenTag is that of the core of the forger's choice.
const (
	chosenTag  = 3
	chosenCore = "3.3"
)

// falseMarks report that all cores are busy but one.
func falseMarks() (list []conga.Mark) {
	for tag := range uint8(4) {
		m := conga.Mark{Feedback: true, Tag: tag, Metric: conga.MaxMetric}
		if tag == chosenTag {
			m.Metric = 0
		}
		list = append(list, m)
	}
	return list
}

// A plain host sends SYNs with marks to a port that nobody listens at. What is sent
// to others of its rack must go as it does without them.
func TestConga_forgedMarksMoveNobodysTraffic(t *testing.T) {
	inShort(t)
	const (
		marks                    = 816
		victim, stranger, forger = "h0.0.2", "h3.0.2", "h3.0.3"
	)
	play := func(seed uint64, flags header.TCPFlags, as string) (share float64) {
		w := congaFabric(t, seed)
		self, _ := w.Topology().Lookup(forger)
		for range 8 {
			w.RoundTrips(victim, stranger, 1000, 10_000, 4*time.Millisecond)
		}
		until(t, w, 100*time.Millisecond)
		before := sentBy(w, victim)
		for sent := 0; sent < marks; sent += 4 {
			for _, m := range falseMarks() {
				if as != "" {
					to := netip.AddrPortFrom(embedded(w, victim), 9)
					w.Network().Inject(self.ID, forged(netip.AddrPortFrom(embedded(w, as), 999), to, m, flags, 1, uint32(sent)*0x5051), w.Now())
				}
			}
			until(t, w, w.Now()+time.Millisecond)
		}
		return shareOf(w, victim, chosenCore, before)
	}
	for seed := uint64(1); seed <= 2; seed++ {
		without := play(seed, 0, "")
		for _, c := range []struct {
			name  string
			flags header.TCPFlags
			as    string
		}{
			{"SYNs of its own", header.TCPFlagSyn, forger},
			{"SYNs as if of the stranger", header.TCPFlagSyn, stranger},
			{"acknowledgements as if of the stranger", header.TCPFlagAck, stranger},
		} {
			share := play(seed, c.flags, c.as)
			t.Logf("%s, seed %d: %.1f %% by the core of the forger's choice, %.1f without %d marks", c.name, seed, 100*share, 100*without, marks)
			if share > without+0.1 {
				t.Errorf("%s, seed %d: the forger has moved a stranger's data", c.name, seed)
			}
		}
	}
}

func embedded(w *world.World, host string) netip.Addr {
	n, _ := w.Topology().Lookup(host)
	return w.Topology().EmbeddedAddr(n.ID)
}
