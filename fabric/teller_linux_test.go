package fabric

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"weft/encap"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A source is told of what the congestion point samples of its packets, signed, and not more
// often than the bounds allow; addresses that are no hosts' are not told.
func TestTeller_tellsSourcesWithinBounds(t *testing.T) {
	ns := kerneltest.Namespace(t, "teller")
	kerneltest.Shell(t, ns, "ip link set lo up && ip addr add 10.0.0.2/32 dev lo && ip addr add 10.0.0.3/32 dev lo")
	r := newMeterRun(t, MeterPort{RateBits: 8000, QueueBytes: 1 << 30, QCN: QCN{Target: QueueLength{Bytes: 1}, MinP: 1, MaxP: 1}})
	r.filled(t, 1<<20, 0)
	var hosts [2]*net.UDPConn
	var teller *Teller
	secret := []byte("0123456789abcdef0123456789abcdef")
	var key atomic.Uint32
	key.Store(3)
	foreign := netip.MustParseAddr("10.0.0.9")
	err := kernel.InNamespace(ns, func() (err error) {
		for i := range hosts {
			if hosts[i], err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 0, 0, byte(2+i)), Port: encap.FeedbackPort}); err != nil {
				return err
			}
		}
		m := &Meter{handle: new(netlink.Handle), at: &kernel.PortProgram{}}
		m.at.Maps = map[string]*ebpf.Map{meterMapNotices: r.notices}
		teller, err = m.Tell(TellerConfig{Host: func(a netip.Addr) bool { return a != foreign }, Key: func() (uint8, []byte) { return uint8(key.Load()), secret }})
		if _, err := m.Tell(TellerConfig{}); err == nil {
			t.Error("a Teller without keys is none")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	send := func(from netip.Addr, n int) {
		packet := kerneltest.IPv4{TTL: 64, Protocol: 6, Src: from, Dst: meterDst}.Bytes(make([]byte, 20))
		binary.BigEndian.PutUint32(packet[24:], 77)
		for range n {
			r.run(t, packet)
		}
	}
	const packets = 300
	send(netip.MustParseAddr("10.0.0.2"), packets)
	send(foreign, 5)
	send(netip.MustParseAddr("10.0.0.3"), 1)
	b := make([]byte, 200)
	for i, h := range hosts {
		h.SetReadDeadline(time.Now().Add(kerneltest.Patience))
		n, err := h.Read(b)
		if err != nil {
			t.Fatalf("host %d: %v", i, err)
		}
		f, err := encap.ParseFeedback(b[:n], func(uint8) []byte { return secret })
		if err != nil || f.Seq() != 77 || f.Source().Addr() != netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)}) || f.Level != 63 || f.Queue < 1<<19 {
			t.Errorf("host %d is told %+v, %v", i, f, err)
		}
		h.Close()
	}
	kerneltest.Within(t, kerneltest.Patience, "all are read", func() bool {
		s := teller.Stats()
		return s.Told+s.Bounded+s.Foreign+s.Failed == packets+6
	})
	s, most := teller.Stats(), uint64(2*tellBurst.Seconds()*tellSource+time.Since(start).Seconds()*tellSource)+2
	if s.Foreign != 5 || s.Failed != 0 || s.Told > most {
		t.Errorf("%+v; at most %d may be told", s, most)
	}
	key.Store(0)
	send(netip.MustParseAddr("10.0.0.3"), 1)
	kerneltest.Within(t, kerneltest.Patience, "what cannot be signed is not sent", func() bool {
		now := teller.Stats()
		return now.Told == s.Told && now.Failed+now.Bounded > s.Bounded
	})
	if err := teller.Close(); err != nil {
		t.Error(err)
	}
}
