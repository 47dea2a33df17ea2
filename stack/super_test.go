package stack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
	"weft/topology"
)

// superMemory is a cable that carries super-segments: a packet with its header
// before it.
type superMemory struct {
	*link.Memory
	mtu     int
	max     atomic.Int64
	refuses atomic.Bool // super-segments, from the next one on
	supers  atomic.Int64
}

func superPair(mtu int) (a, b *superMemory) {
	near, far := link.NewPair(1<<17, 1000)
	a, b = &superMemory{Memory: near, mtu: mtu}, &superMemory{Memory: far, mtu: mtu}
	a.max.Store(link.MaxSuperLen)
	b.max.Store(link.MaxSuperLen)
	return a, b
}

func (m *superMemory) MTU() int      { return m.mtu }
func (m *superMemory) MaxSuper() int { return int(m.max.Load()) }

func (m *superMemory) ReadSuper(bufs [][]byte, sizes []int, offset int) (int, error) {
	n, err := m.Memory.Read(bufs, sizes, offset-link.VnetHeaderLen)
	for i := range n {
		sizes[i] -= link.VnetHeaderLen
	}
	return n, err
}

func (m *superMemory) WriteSuper(bufs [][]byte, offset int) (int, error) {
	return m.Memory.Write(bufs, offset-link.VnetHeaderLen)
}

func (m *superMemory) WriteParts(parts [][]byte) error {
	if m.refuses.Load() {
		m.max.Store(0)
		return errors.New("refused")
	}
	m.supers.Add(1)
	if n, err := m.WriteSuper([][]byte{bytes.Join(append([][]byte{make([]byte, 22)}, parts...), nil)}, 32); n != 1 {
		return fmt.Errorf("%d written: %v", n, err)
	}
	return nil
}

// recorder is a SuperDevice that keeps what is written.
type recorder struct {
	Device
	max     int
	written []transmitted
}

// transmitted is what a device was given.
type transmitted struct {
	vnet   link.VnetHeader
	packet []byte
}

func (r *recorder) MaxSuper() int                               { return r.max }
func (r *recorder) ReadSuper([][]byte, []int, int) (int, error) { panic("nobody reads") }

func (r *recorder) WriteSuper(bufs [][]byte, offset int) (int, error) {
	for _, b := range bufs {
		h := link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(b[offset-link.VnetHeaderLen:]))
		r.written = append(r.written, transmitted{h, bytes.Clone(b[offset:])})
	}
	return len(bufs), nil
}

func (r *recorder) WriteParts(parts [][]byte) error {
	b := bytes.Join(parts, nil)
	r.written = append(r.written, transmitted{link.ParseVnetHeader((*[link.VnetHeaderLen]byte)(b)), b[link.VnetHeaderLen:]})
	return nil
}

// segmentSize is the payload of the segments of superSegment.
const segmentSize = 1000

// superSegment is a packet of a flow with so many segments, as netstack leaves
// it: headers and payload apart, the checksum partial.
func superSegment(segments int) *outgoing {
	b := dataPacket(1, segmentSize*segments)
	b[33] |= flowcell.FlagPSH
	for i := range b[40:] {
		b[40+i] = byte(i / segmentSize)
	}
	t := header.TCP(b[20:])
	t.SetChecksum(header.PseudoHeaderChecksum(6, header.IPv4(b).SourceAddress(), header.IPv4(b).DestinationAddress(), uint16(len(b)-20)))
	half := 40 + len(b[40:])/2 // as if TCP's buffers ended here
	return &outgoing{parts: [][]byte{b[:40], b[40:half], b[half:]}, size: len(b), mss: segmentSize, partial: true, csumStart: 20, csumAt: 16}
}

// sends is what a Host's egress makes of super-segments.
func sends(t *testing.T, policy string, max int, change func(*Config), segments ...int) (*egress, []transmitted) {
	t.Helper()
	r := &recorder{max: max}
	e := testEgress(t, fatTree, policy, func(c *Config) {
		r.Device = c.Device
		c.Device = r
		change(c)
	})
	for _, n := range segments {
		e.transmit(superSegment(n), 0)
	}
	e.flush()
	return e, r.written
}

func uplink(c *Config) { c.UplinkEncapsulates = true }
func plain(*Config)    {}

// One write, one number: the uplink's program does the rest.
func TestTransmit_superSegmentsStayWhole(t *testing.T) {
	e, out := sends(t, "presto", link.MaxSuperLen, uplink, 45, 18, 2, 40)
	if len(out) != 4 {
		t.Fatalf("%d packets", len(out))
	}
	var last flowcell.Number
	for i, segments := range []int{45, 18, 2, 40} {
		p := out[i]
		want := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv4, HdrLen: 40, GSOSize: segmentSize, CsumStart: 20, CsumOffset: 16}
		if p.vnet != want || len(p.packet) != 40+segmentSize*segments || !header.IPv4(p.packet).IsChecksumValid() {
			t.Errorf("%d: %+v, %x", i, p.vnet, p.packet[:40])
		}
		n := flowcell.Number(binary.BigEndian.Uint16(p.packet[4:]))
		switch i {
		case 1: // fits into the flowcell
			if n != last+45 {
				t.Errorf("second %04x after %04x", n, last)
			}
		case 2, 3: // one that does not fit begins the next
			if i == 2 && n.Index() != 0 && n != last+18 {
				t.Errorf("third %04x after %04x", n, last)
			}
		}
		last = n
	}
	if s := e.stats; s.Supers != 4 || s.Packets != 4 || s.Encapsulated != 4 {
		t.Errorf("%+v", s)
	}
}

// Whoever cuts, the receiver sees what a kernel would have made of the
// super-segment, in IP-in-IP, with numbers that count on.
func TestTransmit_cutsWhatNobodyTakesWhole(t *testing.T) {
	const segments = 30
	for _, c := range []struct {
		policy string
		max    int
		change func(*Config)
	}{
		{"presto", link.MaxSuperLen, plain}, // nobody else encapsulates
		{"presto", 0, uplink},               // the offload has failed
		{"ecmp", 0, plain},
		{"drb", link.MaxSuperLen, uplink},
		{"letflow", link.MaxSuperLen, plain},
	} {
		e, out := sends(t, c.policy, c.max, c.change, segments)
		if len(out) != segments {
			t.Fatalf("%s: %d packets; %+v", c.policy, len(out), e.stats)
		}
		bounces := map[[4]byte]int{}
		var first flowcell.Number
		for i, p := range out {
			start, b := 0, p.packet
			if !e.uplink {
				bounces[[4]byte(b[16:20])]++
				inner, err := encap.Decapsulate(b)
				if err != nil {
					t.Fatalf("%s: %v", c.policy, err)
				}
				b, start = inner, encap.Overhead
			}
			ip, tcp := header.IPv4(b), header.TCP(b[20:])
			if p.vnet != (link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: uint16(start + 20), CsumOffset: 16}) {
				t.Fatalf("%s: %+v", c.policy, p.vnet)
			}
			complete(b, 20, 16)
			if !ip.IsChecksumValid() || !validTCP(b) || int(ip.TotalLength()) != 40+segmentSize {
				t.Errorf("%s: segment %d: %x", c.policy, i, b[:40])
			}
			if tcp.SequenceNumber() != header.TCP(superSegment(1).parts[0][20:]).SequenceNumber()+uint32(i*segmentSize) || b[40] != byte(i) || b[len(b)-1] != byte(i) {
				t.Errorf("%s: segment %d has others' bytes", c.policy, i)
			}
			if push := tcp.Flags()&header.TCPFlagPsh != 0; push != (i == segments-1) {
				t.Errorf("%s: segment %d has PSH %v", c.policy, i, push)
			}
			n := flowcell.Number(ip.ID())
			if i == 0 {
				first = n
			}
			if c.policy == "presto" && n != first+flowcell.Number(i) {
				t.Errorf("segment %d is %04x after %04x", i, n, first)
			}
		}
		if c.policy == "drb" && len(bounces) != 4 || (c.policy == "presto" || c.policy == "ecmp") && len(bounces) > 1 {
			t.Errorf("%s: by %v", c.policy, bounces)
		}
	}
}

// A neighbour in the rack gets super-segments as they are.
func TestTransmit_directStaysWhole(t *testing.T) {
	o := superSegment(20)
	to := fatTree.EmbeddedAddr(1).As4()
	copy(o.parts[0][16:], to[:])
	r := &recorder{max: link.MaxSuperLen}
	e := testEgress(t, fatTree, "drb", func(c *Config) { r.Device, c.Device = c.Device, r })
	before := bytes.Join(o.parts, nil)
	e.transmit(o, 0)
	if len(r.written) != 1 || !bytes.Equal(r.written[0].packet, before) || e.stats.Direct != 1 {
		t.Errorf("%d packets, %+v", len(r.written), e.stats)
	}
}

func TestTransmit_wholeAllocatesNothing(t *testing.T) {
	near, far := superPair(1500)
	defer far.Close()
	e := testEgress(t, fatTree, "presto", func(c *Config) { c.Device, c.UplinkEncapsulates = near, true })
	e.super = silent{near}
	o := superSegment(45)
	if n := testing.AllocsPerRun(100, func() { e.transmit(o, 0) }); n != 0 {
		t.Errorf("%v allocations a super-segment", n)
	}
}

// silent is a SuperDevice that takes everything.
type silent struct{ SuperDevice }

func (silent) WriteParts([][]byte) error { return nil }

// superHosts are two Hosts on one cable; nobody needs to encapsulate there.
func superHosts(t *testing.T, policy string) (a, b *Host, devA, devB *superMemory) {
	t.Helper()
	devA, devB = superPair(1500)
	for i, dev := range []*superMemory{devA, devB} {
		h, err := New(Config{Address: fatTree.EmbeddedAddr(topology.NodeID(15 * i)), Topology: fatTree, Device: dev, Policy: policy, UplinkEncapsulates: true, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		if i == 0 {
			a = h
		} else {
			b = h
		}
	}
	return a, b, devA, devB
}

// transferHashed sends random bytes and compares hashes.
func transferHashed(t *testing.T, a, b *Host, size int, during func(sent int)) {
	t.Helper()
	from, to := connect(t, a, b)
	defer from.Close()
	defer to.Close()
	deadline := time.Now().Add(30 * time.Second)
	from.SetDeadline(deadline)
	to.SetDeadline(deadline)
	// Handed over by a channel: a FIN that goes through the kernel orders
	// nothing for Go.
	sum := make(chan []byte, 1)
	go func() {
		sent := sha256.New()
		defer func() { sum <- sent.Sum(nil) }()
		rng := rand.NewChaCha8([32]byte{1})
		buf := make([]byte, 100_000)
		for n := 0; n < size; {
			rng.Read(buf)
			k := min(len(buf), size-n)
			if _, err := from.Write(buf[:k]); err != nil {
				t.Error(err)
				break
			}
			sent.Write(buf[:k])
			n += k
			during(n)
		}
		from.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got := sha256.New()
	n, err := io.Copy(got, to)
	if err != nil || n != int64(size) || !bytes.Equal(<-sum, got.Sum(nil)) {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

func TestHost_superSegmentsEndToEnd(t *testing.T) {
	for _, policy := range []string{"presto", "ecmp"} {
		a, b, dev, _ := superHosts(t, policy)
		transferHashed(t, a, b, 20e6, func(int) {})
		out, in := a.Stats(), b.Stats()
		if dev.supers.Load() < 200 || out.Egress.Supers < 200 || in.Ingress.Supers < 200 {
			t.Errorf("%s: %d super-segments; %+v, %+v", policy, dev.supers.Load(), out.Egress, in.Ingress)
		}
		if policy == "presto" && in.Resequencer.FlowsNumbered == 0 {
			t.Errorf("the receiver does not believe the numbers: %+v", in.Resequencer)
		}
	}
}

// The kernel refuses super-segments from some moment on: what is refused is
// TCP's to send again, and the connection lives on.
func TestHost_survivesOffloadsThatBreak(t *testing.T) {
	a, b, dev, _ := superHosts(t, "presto")
	var refused atomic.Bool
	transferHashed(t, a, b, 10e6, func(sent int) {
		if sent > 3e6 && !refused.Swap(true) {
			dev.refuses.Store(true)
		}
	})
	if out := a.Stats().Egress; dev.MaxSuper() != 0 || out.DeviceDrops == 0 || out.Packets < 3000 {
		t.Errorf("%+v", out)
	}
	transferHashed(t, a, b, 1e6, func(int) {}) // a connection made since
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := a.DialContext(ctxWithTimeout(t), "tcp", b.Address().String()+":1"); err == nil {
		t.Error("a closed Host answers")
	}
}

func ctxWithTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
