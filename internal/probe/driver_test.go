package probe

import (
	"net/netip"
	"testing"
	"time"

	"weft/encap"
	"weft/topology"
)

// loop is a fabric in which everything comes home at once, and whoever is asked answers,
// while alive says so.
type loop struct {
	t      *testing.T
	d      *Driver
	now    time.Duration
	far    netip.Addr // a host of another rack
	alive  func(inner encap.Probe) bool
	unread [][]byte // behind room for an outer header
	sent   int
	slow   time.Duration // what sending takes
}

func newLoop(t *testing.T, change func(*Config)) *loop {
	t.Helper()
	top, err := topology.Parse("fat-tree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	return loopIn(t, Config{Topology: top, Address: netip.MustParseAddr("10.0.0.2")}, far, change)
}

func loopIn(t *testing.T, c Config, far netip.Addr, change func(*Config)) *loop {
	t.Helper()
	l := &loop{t: t, far: far, alive: func(encap.Probe) bool { return true }}
	c.MTU, c.Seed, c.Clock, c.Write = 1500, 1, func() time.Duration { return l.now }, l.write
	if change != nil {
		change(&c)
	}
	var err error
	if l.d, err = New(c); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *loop) write(packet []byte, via netip.Addr) error {
	l.sent++
	l.now += l.slow
	overhead := encap.CarrierIPIP.OverheadFrom(via)
	if packet[0]>>4 == 6 != via.Is6() || [4]byte(via.AsSlice()) != [4]byte(packet[overhead-len(via.AsSlice()):]) {
		l.t.Fatalf("to %v goes %x", via, packet)
	}
	inner := append(make([]byte, encap.MaxOverhead), packet[overhead:]...)
	p, err := encap.ParseProbe(inner[encap.MaxOverhead:])
	if err != nil {
		l.t.Fatal(err)
	}
	if !l.alive(p) {
		return nil
	}
	if p.Kind == encap.ProbeRequest {
		if _, err := encap.ReplyProbe(inner[encap.MaxOverhead:]); err != nil {
			l.t.Fatal(err)
		}
	}
	l.unread = append(l.unread, inner)
	return nil
}

// run lets the Driver do what is due until a time; what comes in is read 100 µs later.
func (l *loop) run(until time.Duration) {
	for l.now < until {
		l.now = min(max(l.now, l.d.Next()), until)
		l.d.Tick(l.now)
		l.now += 100 * time.Microsecond
		l.read()
	}
}

func (l *loop) read() {
	for _, b := range l.unread {
		l.d.Take(b, l.now)
	}
	l.unread = l.unread[:0]
}

var far = netip.MustParseAddr("10.3.1.3")

func (l *loop) edge() topology.NodeID {
	_, edge, _ := l.d.base.HostAt(l.far)
	return edge
}

// A Driver that is not run for a second convicts nobody when it comes back, whether it
// reads first or looks first at what is due, and its packets do not go plain. Who has died
// in the meantime is given up within a second after that.
func TestDriver_stopsForASecond(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { stopsForASecond(t, newLoop) })
	t.Run("IPv6", func(t *testing.T) { stopsForASecond(t, newLoop6) })
}

func stopsForASecond(t *testing.T, newLoop func(*testing.T, func(*Config)) *loop) {
	for _, readsFirst := range []bool{false, true} {
		l := newLoop(t, nil)
		active := func(until time.Duration) {
			for l.now < until {
				l.d.Active(l.far, l.now)
				l.run(min(until, l.now+200*time.Millisecond))
			}
		}
		active(3 * time.Second)
		if l.d.Carriage().Plain(l.edge()) {
			t.Fatalf("plain from the start: %q", l.d.Carriage().Why(l.edge()))
		}
		for range 10 {
			l.d.Tick(max(l.now, l.d.Next())) // what it sends now comes home while it is stopped
			l.now += time.Second
			if readsFirst {
				l.read()
			}
			l.d.Tick(l.now)
			l.read()
			active(l.now + 150*time.Millisecond)
			if st := l.d.Stats().Watcher; l.d.Carriage().Plain(l.edge()) || st.GivenUp+st.Quarantined+st.Unproved+st.Missed > 0 || len(l.d.Topology().Down()) > 0 {
				t.Fatalf("reads first %v, at %v: %q, %+v", readsFirst, l.now, l.d.Carriage().Why(l.edge()), st)
			}
		}
		l.alive = func(p encap.Probe) bool { return p.Kind != encap.ProbeRequest }
		l.now += time.Second
		active(l.now + time.Second)
		if !l.d.Carriage().Plain(l.edge()) {
			t.Errorf("reads first %v: who is dead is in use: %+v", readsFirst, l.d.Stats().Watcher)
		}
	}
}

// Sending that takes long is told of: no probe's time passes meanwhile.
func TestDriver_slowToSend(t *testing.T) {
	l := newLoop(t, nil)
	l.run(time.Second)
	l.slow = 30 * time.Millisecond
	for was := l.sent; l.sent == was; {
		l.now = max(l.now, l.d.Next())
		l.d.Tick(l.now)
	}
	if l.d.Next() < l.now {
		t.Errorf("at %v, when all is sent, something was due at %v", l.now, l.d.Next())
	}
	l.run(3 * time.Second)
	if st := l.d.Stats().Watcher; st.Missed > 0 || st.Stalls == 0 {
		t.Errorf("%+v", st)
	}
}

// request is a peer's, behind room for an outer header.
func request(t *testing.T, from netip.Addr, path uint16) []byte {
	t.Helper()
	b, err := encap.AppendProbe(make([]byte, encap.MaxOverhead), encap.Probe{Kind: encap.ProbeRequest, Path: path, Token: 5,
		Origin: from, Target: netip.MustParseAddr("10.0.0.2")})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// So many requests are answered at once, and so many a second.
func TestBucket_bounds(t *testing.T) {
	sent := 0
	l := newLoop(t, func(c *Config) { c.Write = func([]byte, netip.Addr) error { sent++; return nil } })
	const burst = EchoRate / 10
	for range 3 * burst {
		l.d.Take(request(t, far, 1), time.Second)
	}
	if st := l.d.Stats(); sent != burst || st.Echoed != burst || st.Refused != 2*burst {
		t.Errorf("%d at once, want %d: %+v", sent, burst, st)
	}
	sent = 0
	for i := range 100_000 { // a second's worth of them
		l.d.Take(request(t, far, 1), time.Second+time.Duration(i)*10*time.Microsecond)
	}
	if sent < EchoRate-1 || sent > EchoRate+1 {
		t.Errorf("%d in the second after, want %d", sent, EchoRate)
	}
}

// Who is no host, or asks by no path, is refused and costs nothing of the bound; what is
// no probe is counted.
func TestDriver_refuses(t *testing.T) {
	l := newLoop(t, nil)
	for _, b := range [][]byte{
		request(t, netip.MustParseAddr("10.3.1.1"), 0), // a switch's
		request(t, netip.MustParseAddr("10.0.0.3"), 0), // of the own rack
		request(t, netip.MustParseAddr("10.0.0.2"), 0), // its own, which is no request
		request(t, netip.MustParseAddr("10.9.0.2"), 0), // nobody's
		request(t, far, 4), // of four paths
	} {
		l.d.Take(b, 0)
	}
	broken := request(t, far, 0)
	broken[len(broken)-1] ^= 1
	l.d.Take(broken, 0)
	l.d.Take(make([]byte, encap.MaxOverhead), 0)
	if st := l.d.Stats(); st.Refused != 4 || st.Forged != 3 || st.Echoed != 0 || l.sent != 0 {
		t.Errorf("%+v", st)
	}
}

// In another fabric the host may have another number: all begins anew.
func TestDriver_anotherFabric(t *testing.T) {
	l := newLoop(t, func(c *Config) { c.Address = netip.MustParseAddr("10.1.0.2") })
	l.run(time.Second)
	other, err := topology.Parse("fat-tree:k=6")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.d.SetTopology(other, l.now); err != nil {
		t.Fatal(err)
	}
	if now := l.d.Topology().String(); now != other.String() {
		t.Errorf("the topology is %v", now)
	}
	before := l.d.Stats().Watcher.Answered
	l.run(l.now + time.Second)
	if st := l.d.Stats(); st.Watcher.Answered <= before || st.Unsent > 0 {
		t.Errorf("%+v", st)
	}
}

// A Driver that is idle is so in another fabric, too.
func TestDriver_idleInAnotherFabric(t *testing.T) {
	sent := make(map[bool]int)
	for _, idle := range []bool{false, true} {
		l := newLoop(t, func(c *Config) { c.Idle = idle })
		other, err := topology.Parse("fat-tree:k=6")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.d.SetTopology(other, l.now); err != nil {
			t.Fatal(err)
		}
		l.run(5 * time.Second)
		sent[idle] = l.sent
	}
	if sent[true] == 0 || 3*sent[true] > sent[false] {
		t.Errorf("%d probes while idle, else %d", sent[true], sent[false])
	}
}
