package dataplane

import (
	"net"
	"testing"
	"time"

	"weft/flowcell"
	"weft/link"
	"weft/resequencer"
)

// given is a device that has one packet to read, with its virtio_net_hdr.
type given struct {
	recorder
	packet []byte
}

func (g *given) MTU() int     { return 1500 }
func (g *given) Close() error { return nil }

func (g *given) ReadSuper(bufs [][]byte, sizes []int, offset int) (int, error) {
	sizes[0] = copy(bufs[0][offset-link.VnetHeaderLen:], g.packet) - link.VnetHeaderLen
	return 1, net.ErrClosed
}

// Whatever a Gateway's devices give, it ends in a counter.
func FuzzGateway_anyPacket(f *testing.F) {
	header := func(h link.VnetHeader, b []byte) []byte {
		return append(append(make([]byte, 0, 2000), vnetBytes(h)...), b...)
	}
	tso := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv4, HdrLen: 40, GSOSize: 500, CsumStart: 20, CsumOffset: 16}
	f.Add(header(link.VnetHeader{}, dataPacket(1, 100)), false)
	f.Add(header(tso, dataPacket(1, 1400)), false)
	f.Add(header(tso, dataPacket(1, 1400)), true)
	f.Add(header(link.VnetHeader{}, echoRequest()), true)
	f.Add(header(link.VnetHeader{}, switchError(3, 4, 1400, fatTree.Paths(0, 15).Addr(0), dataPacket(1, 100), 100)), true)
	tso6 := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv6, HdrLen: 60, GSOSize: 500, CsumStart: 40, CsumOffset: 16}
	f.Add(header(link.VnetHeader{}, dataPacket6(1, 100)), false)
	f.Add(header(tso6, dataPacket6(1, 1400)), false)
	f.Add(header(tso6, dataPacket6(1, 1400)), true)
	f.Add(header(link.VnetHeader{}, icmpError6(2, 0, 1300, addrB6, dataPacket6(1, 100))), true)
	fabric, out, up := &given{}, &given{recorder: recorder{max: link.MaxSuperLen}}, &given{recorder: recorder{max: link.MaxSuperLen}}
	var clock handClock
	c := Config{Address: addrB, Topology: fatTree, Device: out, Policy: "presto", UplinkEncapsulates: true, Inner6: true, Clock: &clock}
	e, err := NewEgress(c)
	if err != nil {
		f.Fatal(err)
	}
	in := newIngress(newSuperSource(fabric), newToKernel(up), resequencer.Config{TotalPackets: 64}, &clock)
	in.relays = true
	in.accepts = func(pkt *flowcell.Packet, _ []byte) bool {
		return pkt.Flow.Dst == flowcell.AddressFrom(addrB) || pkt.Flow.Dst == flowcell.AddressFrom(addrB6)
	}
	buf, sizes := make([]byte, link.SuperHeadroom+SuperBuffer), make([]int, 1)
	f.Fuzz(func(t *testing.T, b []byte, arrives bool) {
		if len(b) < link.VnetHeaderLen || len(b) > SuperBuffer {
			return
		}
		if len(b) >= link.VnetHeaderLen+20 && b[link.VnetHeaderLen]&15 == 5 { // past the first checks more often than chance would
			copy(b[link.VnetHeaderLen+16:], addrB.AsSlice())
			fixed(b[link.VnetHeaderLen:])
		}
		out.written, up.written = out.written[:0], up.written[:0]
		clock.Run(100 * time.Microsecond)
		if arrives {
			before := in.stats.Packets
			fabric.packet, in.done = b, make(chan struct{})
			in.run(func(err error) { t.Error(err) })
			if s, r, _ := in.Stats(); s.Packets != before+1 || s.Packets != refused(s)+s.Delivered+s.Merged+uint64(r.HeldPackets) {
				t.Fatalf("unaccounted for: %+v, %d held", s, r.HeldPackets)
			}
			return
		}
		before := e.stats
		sizes[0] = copy(buf[link.SuperHeadroom-link.VnetHeaderLen:], b) - link.VnetHeaderLen
		e.forward([][]byte{buf}, sizes)
		dropped := func(s EgressStats) uint64 { return s.Malformed + s.NoPath + s.TooLong + s.DeviceDrops }
		if sent := e.stats.Packets - before.Packets; sent != uint64(len(out.written)) || (sent == 0) != (dropped(e.stats) == dropped(before)+1) {
			t.Fatalf("unaccounted for: before %+v, after %+v", before, e.stats)
		}
	})
}

func vnetBytes(h link.VnetHeader) []byte {
	var b [link.VnetHeaderLen]byte
	h.Put(&b)
	return b[:]
}

// refused are all packets that ingress has dropped for what they are.
func refused(s IngressStats) uint64 {
	return s.Malformed + s.BadChecksum + s.NotForUs + s.Martian + s.Encapsulated + s.PathErrors
}
