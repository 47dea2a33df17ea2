package link

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestPacket_takesWhatIsForThisHost: not what goes out, nor other hosts' frames,
// nor those of a VLAN, nor what the caller's filter refuses.
func TestPacket_takesWhatIsForThisHost(t *testing.T) {
	c := newCable(t)
	// IP protocol 17 only: ldb [23]; jeq 17; ret all; ret 0.
	udp, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 23, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 17, SkipTrue: 1},
		bpf.RetConstant{Val: wholePacket},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		t.Fatal(err)
	}
	near, far := c.openNear(t, PacketConfig{Gateway: far4}), c.openFar(t, PacketConfig{Filter: udp})
	flow := func(proto byte, port uint16) *traffic {
		return &traffic{src: near4, dst: far4, proto: proto, port: port, mss: 1448}
	}
	last := flow(17, 5003)
	send := func(p []byte) {
		t.Helper()
		if n, err := near.WriteSuper([][]byte{p}, SuperHeadroom); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	packet := func(f *traffic) []byte { return f.packet(make([]byte, 2000), SuperHeadroom, 100) }
	send(packet(flow(6, 5001))) // the filter's
	macs := near.next.macs.Load()
	other := *macs
	other[0] ^= 0x0c
	near.next.macs.Store(&other)
	send(packet(flow(17, 5002))) // another host's
	near.next.macs.Store(macs)
	vlan := vlanFrame(near, packet(flow(17, 5002))[SuperHeadroom:])
	near.raw.Control(func(fd uintptr) {
		if err := unix.Send(int(fd), vlan, 0); err != nil {
			t.Error(err)
		}
	})
	send(packet(last))
	in, sizes := buffers(8, 2000)
	defer unhang(far)()
	n, err := far.Read(in, sizes, 0)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := last.receive(VnetHeader{}, in[0][:sizes[0]]); n != 1 || !ok || err != nil {
		t.Errorf("read %d packets, the first of the right flow: %v, %v; % x", n, ok, err, in[0][:sizes[0]])
	}
}

// vlanFrame is an IPv4 packet with all that a socket of p wants before it, and an
// 802.1Q tag.
func vlanFrame(p *Packet, packet []byte) []byte {
	frame := make([]byte, VnetHeaderLen)
	frame = append(frame, p.next.macs.Load()[:]...)
	frame = append(frame, 0x81, 0, 0, 5, 8, 0)
	return append(frame, packet...)
}

// TestPacket_gatewayAddress: it is asked for, followed when it changes, and a
// fixed one stays fixed.
func TestPacket_gatewayAddress(t *testing.T) {
	c := newCable(t)
	setMAC := func(mac string) net.HardwareAddr {
		hw, err := net.ParseMAC(mac)
		if err != nil {
			t.Fatal(err)
		}
		c.do(func() {
			l, _ := netlink.LinkByName("far0")
			if err := netlink.LinkSetHardwareAddr(l, hw); err != nil {
				t.Error(err)
			}
		})
		return hw
	}
	check := func(p *Packet, want net.HardwareAddr) {
		t.Helper()
		if got := p.next.macs.Load(); !bytes.Equal(got[:6], want) {
			t.Errorf("sends to % x, want % x", got[:6], want)
		}
	}
	first := setMAC("02:00:00:00:00:01")
	for _, gw := range []netip.Addr{far4, far6} {
		check(c.openNear(t, PacketConfig{Gateway: gw}), first)
	}
	p := c.openNear(t, PacketConfig{Gateway: far4})
	second := setMAC("02:00:00:00:00:02")
	// The kernel keeps the old one for a while; here the entry goes at once.
	entry := &netlink.Neigh{LinkIndex: nearIndex, IP: far4.AsSlice(), Family: unix.AF_INET}
	if err := netlink.NeighDel(entry); err != nil {
		t.Fatal(err)
	}
	if err := p.next.resolve(); err != nil {
		t.Error(err)
	}
	check(p, second)
	fixed := net.HardwareAddr{2, 0, 0, 0, 0, 3}
	entry.State, entry.HardwareAddr = netlink.NUD_PERMANENT, fixed
	if err := netlink.NeighSet(entry); err != nil {
		t.Fatal(err)
	}
	if err := p.next.resolve(); err != nil {
		t.Error(err)
	}
	check(p, fixed)
	list, err := netlink.NeighList(nearIndex, unix.AF_INET)
	if err != nil || len(list) != 1 || list[0].State != netlink.NUD_PERMANENT {
		t.Errorf("the administrator's entry became %v, %v", list, err)
	}
}

func TestOpenPacket_saysWhatIsWrong(t *testing.T) {
	tests := []struct {
		config PacketConfig
		text   string
	}{
		{PacketConfig{}, "Interface is missing"},
		{PacketConfig{Interface: "near0", MTU: 10}, "MTU is 10 bytes"},
		{PacketConfig{Interface: "near0", ReceiveBuffer: 1}, "ReceiveBuffer is 1 bytes"},
		{PacketConfig{Interface: "near0", BusyPoll: time.Second}, "BusyPoll is 1s"},
		{PacketConfig{Interface: "near0", Filter: make([]bpf.RawInstruction, 4096)}, "Filter has 4096 instructions"},
		{PacketConfig{Interface: "near0", Filter: make([]bpf.RawInstruction, 1)}, "refuses Filter"},
		{PacketConfig{Interface: "nowhere"}, "nowhere"},
		{PacketConfig{Interface: "lo"}, "not like Ethernet"},
		{PacketConfig{Interface: "near0", Gateway: netip.MustParseAddr("10.7.0.99")}, "gateway 10.7.0.99 does not answer"},
	}
	if os.Geteuid() == 0 {
		newCable(t)
	} else {
		tests = tests[:5]
	}
	for _, tt := range tests {
		p, err := OpenPacket(tt.config)
		if err == nil {
			p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%+v: %v, want %q", tt.config, err, tt.text)
		}
	}
}

// TestPacket_fanoutKeepsFlowsTogether: two sockets share many flows, none of
// which is seen by both.
func TestPacket_fanoutKeepsFlowsTogether(t *testing.T) {
	c := newCable(t)
	near := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing})
	var group [2]*Packet
	for i := range group {
		group[i] = c.openFar(t, PacketConfig{Fanout: 42})
	}
	const flows, each = 64, 5
	var all []*traffic
	for i := range flows {
		all = append(all, &traffic{src: near4, dst: far4, proto: 17, port: uint16(6000 + i), mss: 1448})
	}
	for range each {
		for _, f := range all {
			near.WriteSuper([][]byte{f.packet(make([]byte, 3000), SuperHeadroom, 2000)}, SuperHeadroom)
		}
	}
	total := 0
	in, sizes := buffers(batchLen, SuperHeadroom+MaxSuperLen)
	for i, p := range group {
		// What is there is there: no need to wait for more.
		p.rd.bufs, p.rd.sizes, p.rd.offset, p.rd.super = in, sizes, SuperHeadroom, true
		seen := 0
		for {
			p.rd.n = 0
			var some bool
			p.raw.Control(func(fd uintptr) { some = p.readBatch(fd) })
			if !some {
				break
			}
			for j := range p.rd.n {
				h := ParseVnetHeader((*[VnetHeaderLen]byte)(in[j][SuperHeadroom-VnetHeaderLen:]))
				for _, f := range all {
					ok, err := f.receive(h, in[j][SuperHeadroom:SuperHeadroom+sizes[j]])
					if err != nil {
						t.Fatalf("socket %d, port %d: %v", i, f.port, err)
					}
					if ok {
						seen++
					}
				}
			}
		}
		for _, f := range all {
			if f.got != 0 && f.got != f.sent {
				t.Errorf("socket %d has %d of %d bytes of a flow", i, f.got, f.sent)
			}
		}
		if seen == 0 || seen == flows*each {
			t.Errorf("socket %d has %d packets of %d", i, seen, flows*each)
		}
		total += seen
	}
	if total != flows*each {
		t.Errorf("%d packets of %d", total, flows*each)
	}
}
