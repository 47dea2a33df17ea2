package fabric

import (
	"encoding/binary"
	"errors"
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
		m := &Meter{handle: new(netlink.Handle), at: &kernel.PortProgram{}, ports: []meteredPort{{"lo", int(loIndex)}}}
		const clock = time.Hour // which stands still
		m.at.Maps = map[string]*ebpf.Map{meterMapNotices: r.notices}
		if _, err := m.Tell(TellerConfig{}); err == nil {
			t.Error("a Teller without keys is none")
		}
		teller, err = m.Tell(TellerConfig{now: func() time.Duration { return clock }, Host: func(a netip.Addr, port string) bool { return a != foreign && port == "lo" },
			Key: func() (uint8, []byte) { return uint8(key.Load()), secret }})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	send := func(from netip.Addr, n int) {
		packet := segmentFrom(from)
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
	const burst = uint64(tellSource * tellBurst / time.Second)
	s := teller.Stats()
	if want := (TellerStats{Told: burst + 1, Bounded: packets - burst, Foreign: 5}); s != want {
		t.Errorf("%+v, want %+v", s, want)
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

// A source is told at its rate and burst, all are at theirs, and what the total refuses costs
// the source nothing.
func TestTeller_bounds(t *testing.T) {
	var now time.Duration
	x := newTeller(nil, TellerConfig{now: func() time.Duration { return now }})
	told := func(sources int) (n int) {
		for now = 0; now <= time.Second; now += time.Millisecond {
			for i := range sources {
				for range 3 {
					if x.may(netip.AddrFrom4([4]byte{10, 0, byte(i), 2})) {
						n++
					}
				}
			}
		}
		return n
	}
	if got, want := told(1), tellSource+tellSource/50; got < want-1 || got > want+1 { // and a burst of 20 ms
		t.Errorf("a source is told %d times in a second, want %d", got, want)
	}
	x = newTeller(nil, TellerConfig{now: func() time.Duration { return now }})
	if got, want := told(100), tellTotal+tellTotal/50; got < want-1 || got > want+1 {
		t.Errorf("100 sources are told %d times in a second, want %d", got, want)
	}
}

// A record that is no notice is passed over. When no more can be read, the statistics and
// whoever wants to know are told why.
func TestTeller_readErrors(t *testing.T) {
	broken := errors.New("broken")
	script := []error{errShortNotice, nil, errShortNotice, broken}
	var said error
	x := newTeller(&Meter{}, TellerConfig{Host: func(netip.Addr, string) bool { return false }, Ended: func(err error) { said = err }})
	x.run(func() (Notice, error) {
		err := script[0]
		script = script[1:]
		return Notice{}, err
	})
	if s, want := x.Stats(), (TellerStats{Foreign: 1, Malformed: 2, Ended: "broken"}); s != want || said != broken {
		t.Errorf("%+v, want %+v; it says %v", s, want, said)
	}
	x = newTeller(&Meter{}, TellerConfig{Ended: func(err error) { t.Errorf("Close is no error: %v", err) }})
	x.run(func() (Notice, error) { return Notice{}, ErrNoticesClosed })
	if s := x.Stats(); s != (TellerStats{}) {
		t.Errorf("after Close: %+v", s)
	}
}
