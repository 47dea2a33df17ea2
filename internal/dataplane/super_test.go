package dataplane

import (
	"bytes"
	"encoding/binary"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/flowcell"
	"weft/link"
)

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
func superSegment(segments int) *Outgoing {
	b := dataPacket(1, segmentSize*segments)
	b[33] |= flowcell.FlagPSH
	for i := range b[40:] {
		b[40+i] = byte(i / segmentSize)
	}
	t := header.TCP(b[20:])
	t.SetChecksum(header.PseudoHeaderChecksum(6, header.IPv4(b).SourceAddress(), header.IPv4(b).DestinationAddress(), uint16(len(b)-20)))
	half := 40 + len(b[40:])/2 // as if TCP's buffers ended here
	return &Outgoing{Parts: [][]byte{b[:40], b[40:half], b[half:]}, size: len(b), MSS: segmentSize, Partial: true, CsumStart: 20, CsumAt: 16}
}

// sends is what a Host's egress makes of super-segments.
func sends(t *testing.T, policy string, max int, change func(*Config), segments ...int) (*Egress, []transmitted) {
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
	e.outlet.flush()
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
			if tcp.SequenceNumber() != header.TCP(superSegment(1).Parts[0][20:]).SequenceNumber()+uint32(i*segmentSize) || b[40] != byte(i) || b[len(b)-1] != byte(i) {
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
	copy(o.Parts[0][16:], to[:])
	r := &recorder{max: link.MaxSuperLen}
	e := testEgress(t, fatTree, "drb", func(c *Config) { r.Device, c.Device = c.Device, r })
	before := bytes.Join(o.Parts, nil)
	e.transmit(o, 0)
	if len(r.written) != 1 || !bytes.Equal(r.written[0].packet, before) || e.stats.Direct != 1 {
		t.Errorf("%d packets, %+v", len(r.written), e.stats)
	}
}

func TestTransmit_wholeAllocatesNothing(t *testing.T) {
	near, far := superPair(1500)
	defer far.Close()
	e := testEgress(t, fatTree, "presto", func(c *Config) { c.Device, c.UplinkEncapsulates = near, true })
	e.outlet = newSuperOutlet(e, silent{near})
	o := superSegment(45)
	if n := testing.AllocsPerRun(100, func() { e.transmit(o, 0) }); n != 0 {
		t.Errorf("%v allocations a super-segment", n)
	}
}

// silent is a SuperDevice that takes everything.
type silent struct{ SuperDevice }

func (silent) WriteParts([][]byte) error { return nil }
