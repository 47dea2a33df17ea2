package stack

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/dataplane"
	"weft/internal/probe"
	"weft/topology"
)

// tape is a device that keeps what is written.
type tape struct {
	mu      sync.Mutex
	packets [][]byte
}

func (d *tape) Write(bufs [][]byte, offset int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range bufs {
		d.packets = append(d.packets, slices.Clone(b[offset:]))
	}
	return len(bufs), nil
}

func (d *tape) Read([][]byte, []int, int) (int, error) { panic("time is virtual") }
func (d *tape) MTU() int                               { return 1500 }
func (d *tape) Close() error                           { return nil }

// samples takes the samples off the tape, and the paths by which they went.
func (d *tape) samples(t *testing.T) (list []encap.Sample) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.packets {
		inner, path := wayOf(t, b)
		if s, err := encap.ParseSample(inner); err == nil {
			if int(s.Path) != path {
				t.Fatalf("a sample of path %d goes by %d", s.Path, path)
			}
			list = append(list, s)
		}
	}
	d.packets = nil
	return list
}

// cell takes the latest packet of a flow off the tape, and returns the path by which it
// went, -1 if it was not encapsulated.
func (d *tape) cell(t testing.TB, port uint16) int {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, b := range slices.Backward(d.packets) {
		inner, path := wayOf(t, b)
		var pkt flowcell.Packet
		if pkt.Parse(inner) == nil && pkt.IsTCP() && pkt.Flow.SrcPort == port {
			d.packets = slices.Delete(d.packets, i, i+1)
			return path
		}
	}
	return -1
}

// wayOf takes the outer header off a packet to B, and returns the path that it says, -1
// if there is none.
func wayOf(t testing.TB, b []byte) (inner []byte, path int) {
	t.Helper()
	set := fatTree.Paths(0, 15)
	var err error
	switch {
	case b[0]>>4 == 6:
		ports, bad := encap.ParseSIDs(netip.AddrFrom16([16]byte(b[24:])))
		if bad != nil {
			t.Fatal(bad)
		}
		path = slices.IndexFunc(set.Live, func(n int) bool { return slices.Equal(set.Choices(n), ports) })
		inner, err = encap.DecapsulateSRv6(b)
	case b[9] == flowcell.ProtoIPIP:
		path = slices.IndexFunc(set.Live, func(n int) bool { return set.Addr(n) == netip.AddrFrom4([4]byte(b[16:])) })
		inner, err = encap.Decapsulate(b)
	default:
		return b, -1
	}
	if err != nil {
		t.Fatal(err)
	}
	return inner, path
}

// samplingHost is A, with a policy that samples, and a clock set by hand.
func samplingHost(t testing.TB, change ...func(*Config)) (h *Host, d *tape, clock *handClock) {
	t.Helper()
	d, clock = &tape{}, &handClock{}
	c := Config{Address: addrA, Topology: fatTree, Device: d, Policy: "luopan", Simulation: Simulation{Seed: 3, Clock: clock}}
	for _, f := range change {
		f(&c)
	}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h, d, clock
}

// sendCell has a Host send a flowcell to B, and returns the path that it took, -1 if it
// was dropped or the device is to encapsulate it.
func (h *Host) sendCell(t testing.TB, port uint16) int {
	t.Helper()
	b := dataPacket(port, 1000)
	to := addrB.As4()
	copy(b[16:], to[:])
	dataplane.Send(h.egress, [][]byte{fixed(b)}, func(b []byte, o *dataplane.Outgoing) { o.Begin(len(b)); o.Parts = append(o.Parts, b) })
	return h.below.(interface{ cell(testing.TB, uint16) int }).cell(t, port)
}

// reply is B's answer to a probe, with change made to it.
func reply(t testing.TB, s encap.Sample, change func(*encap.Sample)) []byte {
	t.Helper()
	s.ACK, s.From, s.To, s.Received = true, s.To, s.From, time.Hour
	change(&s)
	b, err := encap.AppendSample(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func untouched(*encap.Sample) {}

// The first flowcell has paths probed at once, by the very headers of data; the
// answers decide until they are too old; then others are asked for.
func TestSampler_choosesTheEmptierPath(t *testing.T) {
	for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
		h, d, clock := samplingHost(t, func(c *Config) { c.Carrier, c.PolicyOptions.Expiry = carrier, time.Millisecond })
		h.sendCell(t, 1)
		probes := d.samples(t)
		if len(probes) != 2 || probes[0].Path == probes[1].Path {
			t.Fatalf("probed is %+v", probes)
		}
		for _, p := range probes {
			if p.ACK || p.From != addrA || p.To != addrB || p.Queue != 0 {
				t.Fatalf("a probe says %+v", p)
			}
		}
		clock.Run(20 * time.Microsecond)
		h.Receive(reply(t, probes[0], func(s *encap.Sample) { s.Queue, s.Meters = 90, 3 }))
		h.Receive(reply(t, probes[1], func(s *encap.Sample) { s.Queue, s.Meters = 3, 3 }))
		// Who has sent hardly anything fills all paths, that with the short queues first.
		var by [4]int
		for port := range uint16(20) {
			path := h.sendCell(t, 100+port)
			if want := int(probes[(port+1)%2].Path); port < 2 && path != want {
				t.Fatalf("%v: flowcell %d takes path %d, of %d the queues are shorter", carrier, port, path, want)
			}
			by[path]++
		}
		if by != [4]int{5, 5, 5, 5} {
			t.Fatalf("%v: flowcells by path: %v", carrier, by)
		}
		know := h.Congestion()
		if len(know) != 1 || know[0].Rack != "e3.1" || know[0].Metric != "queue" || know[0].Prefix.String() != "10.3.1.0/24" {
			t.Fatalf("known is %+v", know)
		}
		for _, p := range know[0].Paths {
			if p.Known != (p.Path == int(probes[0].Path) || p.Path == int(probes[1].Path)) || p.Best != (p.Path == int(probes[1].Path)) ||
				!p.Live || p.Bounce != fatTree.Paths(0, 15).Addr(p.Path) || p.Known && p.Meters != 3 {
				t.Errorf("of path %d is known %+v", p.Path, p)
			}
		}
		clock.Run(2 * time.Millisecond)
		again := d.samples(t)
		if len(again) < 2 {
			t.Fatalf("%v: after the expiry %d are asked for", carrier, len(again))
		}
		s := h.Stats().Samples
		if s.Sent != s.Table.Probes || s.Bytes != s.Sent*uint64(encap.SampleLen+carrier.Overhead()) || s.Table.Answers != 2 {
			t.Errorf("%+v", s)
		}
		clock.Run(3 * time.Second) // nobody sends: nobody asks
		d.samples(t)
		clock.Run(time.Second)
		if n := len(d.samples(t)); n > 0 || len(h.Congestion()) > 0 {
			t.Errorf("%d probes while idle", n)
		}
	}
}

// What a liar can do: spoil what is known of its own rack, for as long as the paths
// it was asked about are those in use. All else is refused and counted.
func TestSampler_liars(t *testing.T) {
	h, d, clock := samplingHost(t, func(c *Config) { c.PolicyOptions.Expiry = time.Millisecond })
	h.sendCell(t, 1)
	probes := d.samples(t)
	stranger := netip.MustParseAddr("10.2.1.130")
	h.Receive(reply(t, probes[0], func(s *encap.Sample) { s.Token++ }))
	h.Receive(reply(t, probes[0], func(s *encap.Sample) { s.From = stranger }))
	h.Receive(reply(t, probes[0], func(s *encap.Sample) { s.Path ^= 1 }))
	h.Receive(reply(t, probes[0], func(s *encap.Sample) { s.Path = encap.MaxSamplePath }))
	bad := reply(t, probes[0], untouched)
	bad[40] ^= 1
	h.Receive(bad)
	s := h.Stats().Samples
	if s.Table.Answers != 0 || s.Table.Unknown != 1 || s.Table.WrongHost != 1 || s.Table.WrongPath != 2 || s.Forged != 1 {
		t.Errorf("after lies: %+v", s)
	}
	// Replays, thousands of them.
	for range 5000 {
		h.Receive(reply(t, probes[0], func(s *encap.Sample) { s.Queue, s.Meters = 0, 5 }))
	}
	if s := h.Stats().Samples; s.Table.Answers != 1 || s.Table.Replayed != 4999 {
		t.Errorf("after replays: %+v", s)
	}
	// Metric 0 for a path that is dead: while the network says that it lives it is
	// used for an expiry; once it is known to be dead, never.
	lie := int(probes[0].Path)
	if path := h.sendCell(t, 2); path != lie {
		t.Fatalf("path %d is taken, of %d it was said that it is empty", path, lie)
	}
	core := fatTree.Paths(0, 15).Bounce(lie)
	if err := h.SetTopology(fatTree.WithoutNode(core)); err != nil {
		t.Fatal(err)
	}
	for port := range uint16(50) {
		if path := h.sendCell(t, 10+port); path == lie || path < 0 {
			t.Fatalf("path %d is taken, which is dead", path)
		}
	}
	clock.Run(10 * time.Millisecond)
	for _, p := range d.samples(t) {
		if int(p.Path) == lie {
			t.Error("a dead path is probed")
		}
		h.Receive(reply(t, p, func(s *encap.Sample) { s.Path = uint32(lie) }))
	}
	if path := h.sendCell(t, 99); path == lie {
		t.Error("a lie about a dead path is believed")
	}
}

// Whoever asks is answered, whatever the policy: by the path by which it asked, up
// to a bound, and no others.
func TestSampler_answers(t *testing.T) {
	for _, policy := range []string{"luopan", "drb", "ecmp", "conga"} {
		for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
			h, d, clock := samplingHost(t, func(c *Config) { c.Policy, c.Carrier = policy, carrier })
			clock.Run(time.Second)
			ask := func(path uint32, from netip.Addr) []byte {
				b, err := encap.AppendSample(nil, encap.Sample{Path: path, Queue: 7, Meters: 2, Token: uint64(path) + 1, From: from, To: addrA})
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			for path := range uint32(4) {
				b := ask(path, addrB)
				b[1] |= 3 // marked on its way
				h.Receive(fixed(b))
			}
			answers := d.samples(t)
			if len(answers) != 4 {
				t.Fatalf("%d answers", len(answers))
			}
			for i, a := range answers {
				want := encap.Sample{Path: uint32(i), ACK: true, Queue: 7, Meters: 2, Marked: true, Token: uint64(i) + 1, Received: clock.Now(), From: addrA, To: addrB}
				if a != want {
					t.Errorf("answer %d is %+v", i, a)
				}
			}
			h.Receive(ask(4, addrB))                              // there is none
			h.Receive(ask(0, netip.MustParseAddr("10.0.0.131")))  // of the same rack
			h.Receive(ask(0, netip.MustParseAddr("10.0.0.1")))    // a switch
			h.Receive(ask(0, netip.MustParseAddr("192.168.0.1"))) // not of the fabric
			if s := h.Stats().Samples; s.Answered != 4 || s.Refused != 4 {
				t.Errorf("%+v", s)
			}
			const maxAnswers = probe.AnswerRate
			for range 2 * maxAnswers / 10 {
				h.Receive(ask(1, addrB))
			}
			clock.Run(100 * time.Millisecond)
			for range maxAnswers {
				h.Receive(ask(1, addrB))
			}
			if s := h.Stats().Samples; s.Answered > 2*maxAnswers/10+4 || s.Answered < maxAnswers/10 || s.Answered+s.Refused != h.Stats().Ingress.Samples {
				t.Errorf("%d answers in a tenth of a second, %+v", s.Answered, s)
			}
			d.samples(t)
			if policy != "luopan" {
				h.Receive(reply(t, encap.Sample{From: addrA, To: addrB}, untouched))
				if s := h.Stats().Samples; s.Unasked != 1 {
					t.Errorf("%+v", s)
				}
			}
		}
	}
}

// In real time, with all that goes on at once, and with a topology that changes.
func TestHost_awareOverTheWire(t *testing.T) {
	for _, policy := range []string{"luopan", "conga", "local", "drill"} {
		for _, carrier := range []encap.Carrier{encap.CarrierIPIP, encap.CarrierSRv6} {
			w := newWire(t)
			with := func(c *Config) { c.Policy, c.Carrier = policy, carrier }
			a, b := newHost(t, w, addrA, with), newHost(t, w, addrB, with)
			cut := fatTree.Without(between(t, fatTree, "a3.2", "c1.1"))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range 20 {
					a.SetTopology([]*topology.Topology{cut, fatTree}[i%2])
					_ = a.Congestion()
					time.Sleep(time.Millisecond)
				}
			}()
			transfer(t, a, b, 1_000_000)
			transfer(t, b, a, 300_000)
			<-done
			s := a.Stats()
			if policy == "luopan" && (s.Samples.Table.Answers == 0 || b.Stats().Samples.Answered == 0) {
				t.Errorf("%v: %+v", carrier, s.Samples)
			}
			if policy == "conga" && (s.Ingress.Marked == 0 || s.Conga.Destinations != 1) {
				t.Errorf("%v: %+v, %d marks", carrier, s.Conga, s.Ingress.Marked)
			}
			if s.Ingress.BadChecksum+s.Ingress.Malformed+s.Egress.Malformed+s.Egress.NoPath > 0 {
				t.Errorf("%s by %v: %+v %+v", policy, carrier, s.Ingress, s.Egress)
			}
		}
	}
}

// Whatever comes in as a sample or with a mark, a Host neither falls nor answers
// what it was not asked, and every sample is counted as one thing.
func FuzzHost_samples(f *testing.F) {
	probe, _ := encap.AppendSample(nil, encap.Sample{Path: 1, Token: 9, From: addrB, To: addrA})
	f.Add(probe, uint16(1), false)
	answer, _ := encap.AppendSample(nil, encap.Sample{ACK: true, Token: 9, From: addrB, To: addrA, Received: -1})
	f.Add(answer, uint16(1000), false)
	marked := with(dataPacket(1, 10), func(b []byte) {
		b[1], b[6] = 9<<2, 0x40
		from, to := addrB.As4(), addrA.As4()
		copy(b[12:], from[:])
		copy(b[16:], to[:])
	})
	f.Add(withTCPChecksum(marked), uint16(10), true)
	f.Fuzz(func(t *testing.T, packet []byte, microseconds uint16, conga bool) {
		policy := "luopan"
		if conga {
			policy = "conga"
		}
		h, d, clock := samplingHost(t, func(c *Config) { c.Policy = policy })
		h.sendCell(t, 1)
		for range 3 {
			h.Receive(slices.Clone(packet))
			clock.Run(time.Duration(microseconds) * time.Microsecond)
			h.sendCell(t, 2)
		}
		s := h.Stats()
		n := s.Samples
		if got := n.Answered + n.Refused + n.Forged + n.Unasked + n.Table.Answers + n.Table.Late + n.Table.Unknown +
			n.Table.Replayed + n.Table.WrongHost + n.Table.WrongPath; got != s.Ingress.Samples {
			t.Errorf("of %d samples %d are accounted for: %+v", s.Ingress.Samples, got, n)
		}
		if len(d.samples(t)) > 3+int(n.Sent) {
			t.Errorf("more is sent than asked for: %+v", n)
		}
	})
}

// A peer that was taken for a plain host is asked as soon as it samples itself.
func TestSampler_hearsOfPeers(t *testing.T) {
	h, d, clock := samplingHost(t)
	port := uint16(0)
	for quiet := 0; quiet < 100; { // until it is left alone
		port++
		h.sendCell(t, port)
		if clock.Run(100 * time.Millisecond); len(d.samples(t)) > 0 {
			quiet = 0
		} else {
			quiet++
		}
	}
	if h.Stats().Samples.Table.Rounds == 0 {
		t.Fatal("nothing was ever asked")
	}
	ask, err := encap.AppendSample(nil, encap.Sample{Token: 5, From: addrB, To: addrA})
	if err != nil {
		t.Fatal(err)
	}
	h.Receive(ask)
	clock.Run(time.Millisecond)
	if asked := slices.DeleteFunc(d.samples(t), func(s encap.Sample) bool { return s.ACK }); len(asked) != 2 {
		t.Errorf("%d probes; %+v", len(asked), h.Stats().Samples.Table)
	}
}
