package dataplane

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/link"
	"weft/resequencer"
)

// script is a device of which each read brings what was put there, without waiting,
// and that keeps what is written.
type script struct {
	recorder
	packets [][]byte
	header  link.VnetHeader
}

func (s *script) MTU() int                               { return 1500 }
func (s *script) Close() error                           { return nil }
func (s *script) Read([][]byte, []int, int) (int, error) { return 0, net.ErrClosed }

func (s *script) ReadSuper(bufs [][]byte, sizes []int, offset int) (n int, err error) {
	for ; n < len(bufs) && n < len(s.packets); n++ {
		s.header.Put((*[link.VnetHeaderLen]byte)(bufs[n][offset-link.VnetHeaderLen:]))
		sizes[n] = copy(bufs[n][offset:], s.packets[n])
	}
	s.packets = s.packets[n:]
	return n, nil
}

// In virtual time nothing happens but by calls and by the clock's timers: what is
// behind a hole comes out when its time is up, and its frame is free again.
func TestGateway_livesByItsClock(t *testing.T) {
	clock := new(handClock)
	programs, below := &script{recorder: recorder{max: link.MaxSuperLen}}, &script{header: link.VnetHeader{Flags: link.VnetDataValid}}
	beats := 0
	const hold = 5 * time.Millisecond
	g, err := NewGateway(GatewayConfig{Address: addrB, Topology: fatTree, Programs: programs, Fabric: below, Policy: "drb", Seed: 1,
		Resequencer: resequencer.Config{Discipline: resequencer.Sequence, Hold: hold, MinHold: hold}, Clock: clock, BeatIn: func() { beats++ }})
	if err != nil {
		t.Fatal(err)
	}
	first, behind := dataPacket(1, 1000), dataPacket(1, 1000)
	binary.BigEndian.PutUint32(behind[24:], binary.BigEndian.Uint32(behind[24:])+2000)
	below.packets = [][]byte{fixed(first), fixed(behind)}
	read := func() {
		t.Helper()
		if err := g.ReadFabric(); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if s := g.Stats(); len(programs.written) != 1 || s.Frames != superBatch+1 {
		t.Fatalf("%d packets delivered: %+v", len(programs.written), s)
	}
	clock.Run(hold)
	if s := g.Stats(); len(programs.written) != 2 || s.Frames != superBatch {
		t.Errorf("%d packets delivered when the time was up: %+v", len(programs.written), s)
	}
	read()
	if clock.Run(beatEvery); beats != 1 {
		t.Errorf("%d beats at once", beats)
	}
	if read(); beats != 2 {
		t.Errorf("%d beats after %v", beats, beatEvery)
	}
	programs.packets = [][]byte{fixed(dataPacket(2, 100))}
	if err := g.ReadPrograms(); err != nil || g.Stats().Egress.Direct+g.Stats().Egress.Encapsulated != 1 {
		t.Errorf("%v, %+v", err, g.Stats().Egress)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-g.Done():
	default:
		t.Error("Close has not ended it")
	}
}

func TestNewGateway_noClockForATunnel(t *testing.T) {
	_, err := NewGateway(GatewayConfig{Programs: &script{}, Tunnel: &Tunnel{}, Clock: new(handClock)})
	if err == nil || !strings.Contains(err.Error(), "GatewayConfig.Clock") {
		t.Errorf("%v", err)
	}
}

// A packet that is too long for the Gateway, such as when somebody has made the TUN's
// MTU larger, is refused with an error that says what would do, as one or as part of a
// super-segment.
func TestGateway_refusesWhatIsTooLong(t *testing.T) {
	for _, super := range []bool{false, true} {
		programs := &script{recorder: recorder{max: link.MaxSuperLen}}
		g, err := NewGateway(GatewayConfig{Address: addrA, Topology: fatTree, Programs: programs, Policy: "drb", Seed: 1, Clock: new(handClock)})
		if err != nil {
			t.Fatal(err)
		}
		b := dataPacket(1, 1450)
		if super {
			b = dataPacket(1, 4*1450)
			programs.header = link.VnetHeader{Flags: link.VnetNeedsCsum, CsumStart: 20, CsumOffset: 16, GSOType: link.VnetGSOTCPv4, GSOSize: 1450, HdrLen: 40}
		}
		b[6] |= 0x40 // don't fragment
		programs.packets = [][]byte{fixed(b)}
		if err := g.ReadPrograms(); err != nil {
			t.Fatal(err)
		}
		if len(programs.written) != 1 {
			t.Fatalf("super-segment %v: %d packets written: %+v", super, len(programs.written), g.Stats().Egress)
		}
		icmp := programs.written[0].packet
		if !tooBig(icmp) || reportedMTU(icmp) != 1500-encap.Overhead || g.Stats().Egress.TooLong != 1 {
			t.Errorf("super-segment %v: %x, %+v", super, icmp, g.Stats().Egress)
		}
		g.Close()
	}
}
