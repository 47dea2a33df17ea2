package probe

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/bucket"
	"weft/internal/checksum"
	"weft/internal/paths"
	"weft/luopan"
	"weft/topology"
)

// Of the fabric of these tests: this host, and one in another pod.
var (
	own  = netip.MustParseAddr("10.0.0.2")
	peer = far
)

// bench is a Sampler whose packets stay where they are, in virtual time.
type bench struct {
	*Sampler
	t       testing.TB
	top     *topology.Topology
	carrier encap.Carrier
	table   *luopan.Table
	fails   bool // Write fails
	sent    []sent
}

// sent is what a packet says, and the path that its outer header has.
type sent struct {
	encap.Sample
	path, id int
	bytes    int
}

func newBench(t testing.TB, carrier encap.Carrier, samples bool, answers bucket.Bucket) *bench {
	t.Helper()
	b := &bench{t: t, carrier: carrier, top: fabricOf(t, "fat-tree:k=4")}
	b.Sampler = NewSampler(SamplerConfig{Address: own, Answers: answers, Encapsulate: b.encapsulate, Outer: b.outer,
		Rack: func(host netip.Addr) (topology.NodeID, bool) { return b.top.RackAt(host) }, Write: b.write})
	if samples {
		b.useTable()
	}
	return b
}

func fabricOf(t testing.TB, spec string) *topology.Topology {
	t.Helper()
	top, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func (b *bench) useTable() {
	b.t.Helper()
	var err error
	if b.table, err = luopan.New(luopan.Config{Expiry: time.Millisecond, Seed: 1}); err != nil {
		b.t.Fatal(err)
	}
	b.Use(b.table)
}

// choose has a flowcell begin to a host, over the paths that live.
func (b *bench) choose(to netip.Addr, now time.Duration) (path int, ok bool) {
	edge, _ := b.top.RackAt(to)
	return b.table.Choose(uint32(edge), Number(to), b.set(to).Live, now)
}

func (b *bench) set(to netip.Addr) topology.PathSet {
	self, _ := b.top.ByAddr(own)
	id, _ := b.top.ByAddr(to)
	return b.top.Paths(self, id)
}

func (b *bench) encapsulate(buf []byte, to netip.Addr, path int, id uint16) ([]byte, bool) {
	if !slices.Contains(b.set(to).Live, path) {
		return nil, false
	}
	o, ok := b.outer(to, path)
	if !ok {
		return nil, false
	}
	packet, err := o.Encapsulate(buf, id)
	return packet, err == nil
}

func (b *bench) outer(to netip.Addr, path int) (encap.Outer, bool) {
	return paths.OuterTo(b.top, b.carrier, own, to, path)
}

func (b *bench) write(packet []byte) error {
	if b.fails {
		return errors.New("no room")
	}
	s, inner := sent{bytes: len(packet)}, []byte(nil)
	var err error
	if b.carrier == encap.CarrierSRv6 {
		inner, err = encap.DecapsulateSRv6(packet)
	} else {
		s.id = int(packet[4])<<8 | int(packet[5])
		inner, err = encap.Decapsulate(packet)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if s.Sample, err = encap.ParseSample(inner); err != nil {
		b.t.Fatal(err)
	}
	s.path = b.wayOf(packet, s.To)
	clear(packet) // it is the Sampler's again
	b.sent = append(b.sent, s)
	return nil
}

// wayOf is the path to a host that an outer header says.
func (b *bench) wayOf(packet []byte, to netip.Addr) int {
	for path := range b.set(to).Count() {
		o, _ := b.outer(to, path)
		want, err := o.Encapsulate(append(make([]byte, encap.MaxOverhead), packet[b.carrier.Overhead():]...), uint16(packet[4])<<8|uint16(packet[5]))
		if err != nil {
			b.t.Fatal(err)
		}
		if slices.Equal(want, packet) {
			return path
		}
	}
	return -1
}

// taken is what has been sent since the last time.
func (b *bench) taken() []sent {
	s := b.sent
	b.sent = nil
	return s
}

// packet is a sample that a peer sends.
func (b *bench) packet(s encap.Sample) []byte {
	b.t.Helper()
	p, err := encap.AppendSample(nil, s)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// ask is a probe of a peer by a path.
func (b *bench) ask(from netip.Addr, path int) []byte {
	b.t.Helper()
	return b.packet(encap.Sample{Path: uint32(path), Token: 7, Queue: 9, Meters: 2, From: from, To: own})
}

// mark writes a congestion mark into an IPv4 packet (RFC 3168).
func mark(packet []byte) {
	packet[1] |= byte(encap.CE)
	packet[10], packet[11] = 0, 0
	binary.BigEndian.PutUint16(packet[10:], ^checksum.Fold(checksum.Sum(packet[:20], 0)))
}

// answered is the answer to what was sent.
func (b *bench) answered(s sent, change func(*encap.Sample)) []byte {
	b.t.Helper()
	a := encap.Sample{Path: s.Sample.Path, ACK: true, Token: s.Token, Queue: 3, Meters: 5, Received: time.Hour, From: s.To, To: s.From}
	if change != nil {
		change(&a)
	}
	return b.packet(a)
}

// want compares the counters of a Sampler, but for what the Table counts.
func (b *bench) want(want SampleStats) {
	b.t.Helper()
	got := b.Stats()
	got.Table = luopan.Stats{}
	if got != want {
		b.t.Errorf("counted is %+v,\nwant %+v", got, want)
	}
}
