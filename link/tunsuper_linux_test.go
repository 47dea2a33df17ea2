package link

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// behind opens a TUN to the networks behind the near end of the cable.
func behind(t testing.TB, c TUNConfig) *TUN {
	t.Helper()
	c.Routes = behindNets
	tun, err := OpenTUN(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tun.Close() })
	return tun
}

// TestTUN_superSegmentsBothWays sends through the kernel's routing: TUN to the
// far end's packet socket and back, whole and cut by an interface without
// offloads.
func TestTUN_superSegmentsBothWays(t *testing.T) {
	for _, whole := range []bool{true, false} {
		c := newCable(t)
		if !whole {
			ethtool(t, "near0", ethtoolTSO, 0)
			ethtool(t, "near0", ethtoolChecksum, 0)
		}
		tun := behind(t, TUNConfig{Offload: true})
		far := c.openFar(t, PacketConfig{Gateway: near4})
		step, batch := 29, 16
		if !whole {
			step, batch = 499, 4
		}
		for name, f := range flows(behind4, far4, behind6, far6) {
			transfer(t, f, tun, far, sizesTo(f.maxPayload(), f.mss, step), batch, 5)
			if cut := f.whole == 0; f.maxPayload() > f.mss && cut == whole {
				t.Errorf("%s from the TUN: %d super-segments of %d packets", name, f.whole, f.pieces)
			}
		}
		for name, f := range flows(far4, behind4, far6, behind6) {
			transfer(t, f, far, tun, sizesTo(f.maxPayload(), f.mss, 29), 16, 5)
			if f.maxPayload() > f.mss && f.whole == 0 {
				t.Errorf("%s to the TUN: no super-segment of %d packets", name, f.pieces)
			}
		}
	}
}

// TestTUN_withoutOffloadsTakesUnfinishedPackets: a sender need not care how the
// TUN was opened, as long as it keeps to MaxSuper.
func TestTUN_withoutOffloadsTakesUnfinishedPackets(t *testing.T) {
	c := newCable(t)
	tun := behind(t, TUNConfig{})
	far := c.openFar(t, PacketConfig{Gateway: near4})
	for _, f := range flows(behind4, far4, behind6, far6) {
		transfer(t, f, tun, far, sizesTo(f.mss, f.mss, 7), 16, 5)
	}
	for name, f := range flows(far4, behind4, far6, behind6) {
		transfer(t, f, far, tun, sizesTo(f.maxPayload(), f.mss, 999), 2, 5)
		if f.whole != 0 {
			t.Errorf("%s: read a super-segment", name)
		}
	}
	f := &traffic{src: behind4, dst: far4, proto: 6, mss: 1000}
	b := f.packet(make([]byte, 4000), SuperHeadroom, 3000)
	if n, err := tun.WriteSuper([][]byte{b}, SuperHeadroom); n != 0 || err != nil {
		t.Errorf("super-segment: %d, %v", n, err)
	}
	if err := tun.WriteParts([][]byte{b[SuperHeadroom-VnetHeaderLen:]}); err != nil || tun.Drops() != 2 || tun.MaxSuper() != 0 {
		t.Errorf("super-segment in parts: %v, %d drops, MaxSuper %d", err, tun.Drops(), tun.MaxSuper())
	}
	if got := tun.Offloads().String(); got != "water: no offloads, 1 queue" {
		t.Error(got)
	}
}

// TestTUN_plainCallsOnOffloads: Read and Write know nothing of headers.
func TestTUN_plainCallsOnOffloads(t *testing.T) {
	c := newCable(t)
	tun := behind(t, TUNConfig{Offload: true})
	far := c.openFar(t, PacketConfig{Gateway: near4})
	for _, dev := range []struct {
		rx, tx   superDevice
		src, dst netip.Addr
	}{{far, tun, behind4, far4}, {tun, far, far4, behind4}} {
		defer unhang(dev.rx)()
		for _, size := range []int{1, 1448, 1449, 60000} {
			f := &traffic{src: dev.src, dst: dev.dst, proto: 6, port: 5002, mss: 1448}
			b := f.packet(make([]byte, MaxSuperLen), SuperHeadroom, size)
			if size > f.mss {
				dev.tx.WriteSuper([][]byte{b}, SuperHeadroom)
				f.mss = size // Read gives it as one packet
			} else {
				ParseVnetHeader((*[VnetHeaderLen]byte)(b[SuperHeadroom-VnetHeaderLen:])).complete(b[SuperHeadroom:])
				dev.tx.Write([][]byte{b[SuperHeadroom:]}, 0)
			}
			in, sizes := buffers(1, MaxSuperLen)
			for f.got < f.sent {
				if _, err := dev.rx.Read(in, sizes, 0); err != nil {
					t.Fatal(err)
				}
				if _, err := f.receive(VnetHeader{}, in[0][:sizes[0]]); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
			}
		}
		// Many datagrams must not become one.
		udp := &traffic{src: dev.src, dst: dev.dst, proto: 17, port: 5003, mss: 100}
		mark := &traffic{src: dev.src, dst: dev.dst, proto: 17, port: 5004, mss: 100}
		dev.tx.WriteSuper([][]byte{
			udp.packet(make([]byte, 2000), SuperHeadroom, 1000),
			mark.packet(make([]byte, 2000), SuperHeadroom, 50),
		}, SuperHeadroom)
		before := dev.rx.Drops()
		in, sizes := buffers(1, MaxSuperLen)
		for mark.got < mark.sent {
			if _, err := dev.rx.Read(in, sizes, 0); err != nil {
				t.Fatal(err)
			}
			if udp.mine(in[0][:sizes[0]]) {
				t.Error("a UDP super-segment was read as a datagram")
			}
			if _, err := mark.receive(VnetHeader{}, in[0][:sizes[0]]); err != nil {
				t.Fatal(err)
			}
		}
		if d := dev.rx.Drops() - before; d != 1 {
			t.Errorf("%d drops, want 1", d)
		}
	}
}

func TestTUN_offloadsReport(t *testing.T) {
	inNamespace(t, "1")
	tun := openTUN(t, TUNConfig{Offload: true, Queues: 2})
	o := tun.Offloads()
	if o.Opener != "netlink" || !o.Checksum || !o.TSO4 || !o.TSO6 || o.Queues != 2 || o.Fallback != "" {
		t.Errorf("%+v", o)
	}
	if tun.MaxSuper() != MaxSuperLen || tun.Queue(1).MaxSuper() != MaxSuperLen || tun.Queues() != 2 {
		t.Errorf("MaxSuper %d, %d queues", tun.MaxSuper(), tun.Queues())
	}
	l, err := netlink.LinkByName(tun.Name())
	if k, ok := l.(*netlink.Tuntap); err != nil || !ok || k.Queues != 2 || !k.NonPersist {
		t.Errorf("the kernel says %+v, %v", l, err)
	}
	var size int
	tun.queues[1].raw.Control(func(fd uintptr) { size, _ = unix.IoctlGetInt(int(fd), unix.TUNGETVNETHDRSZ) })
	if size != VnetHeaderLen {
		t.Errorf("the kernel's header has %d bytes", size)
	}
}

// TestTUNRead_dropsWhatTheReaderHasNoRoomFor: the kernel hands over what fits,
// and does not say that there was more.
func TestTUNRead_dropsWhatTheReaderHasNoRoomFor(t *testing.T) {
	for _, offload := range []bool{true, false} {
		c := newCable(t)
		tun := behind(t, TUNConfig{Offload: offload})
		far := c.openFar(t, PacketConfig{Gateway: near4})
		for _, f := range []*traffic{
			{src: far4, dst: behind4, proto: 17, port: 5001, mss: 1448},
			{src: far6, dst: behind6, proto: 17, port: 5001, mss: 1428},
		} {
			const room = 500
			fits := room - f.headerLen()
			var out [][]byte
			for _, n := range []int{fits, fits + 1, 900, 10} {
				out = append(out, f.packet(make([]byte, 2000), SuperHeadroom, n))
			}
			far.WriteSuper(out, SuperHeadroom)
			in, sizes := buffers(4, SuperHeadroom+room)
			defer unhang(tun)()
			drops := tun.Drops()
			var got []int
			for len(got) < 2 {
				n, err := tun.ReadSuper(in, sizes, SuperHeadroom)
				if err != nil {
					t.Fatal(err)
				}
				for i := range n {
					if f.mine(in[i][SuperHeadroom : SuperHeadroom+sizes[i]]) {
						got = append(got, sizes[i]-f.headerLen())
					}
				}
			}
			if got[0] != fits || got[1] != 10 || tun.Drops()-drops != 2 {
				t.Errorf("offload %v: payloads %v, want %d and 10; %d drops, want 2", offload, got, fits, tun.Drops()-drops)
			}
		}
	}
}

// TestTUN_countsWhatNobodyRead fills the kernel's queue.
func TestTUN_countsWhatNobodyRead(t *testing.T) {
	c := newCable(t)
	tun := behind(t, TUNConfig{Offload: true})
	far := c.openFar(t, PacketConfig{Gateway: near4})
	l, err := netlink.LinkByName(tun.Name())
	if err != nil {
		t.Fatal(err)
	}
	f := &traffic{src: far4, dst: behind4, proto: 17, port: 5001, mss: 1448}
	const more = 100
	for range l.Attrs().TxQLen + more {
		far.WriteSuper([][]byte{f.packet(make([]byte, 2000), SuperHeadroom, 100)}, SuperHeadroom)
	}
	drops := tun.Drops()
	if drops < more || drops > more+10 { // the kernel's own packets, such as router solicitations, take part
		t.Errorf("%d drops, want %d", drops, more)
	}
	if tun.Close(); tun.Drops() < drops || tun.Drops() > more+20 {
		t.Errorf("%d drops after Close, %d before", tun.Drops(), drops)
	}
}

func TestTUN_interfaceGone(t *testing.T) {
	inNamespace(t, "1")
	tun := openTUN(t, TUNConfig{Offload: true})
	l, err := netlink.LinkByName(tun.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkDel(l); err != nil {
		t.Fatal(err)
	}
	defer unhang(tun)()
	in, sizes := buffers(1, 2000)
	for err == nil {
		_, err = tun.Read(in, sizes, 0)
	}
	if !errors.Is(err, errGone) {
		t.Errorf("Read: %v", err)
	}
	if n, err := tun.Write([][]byte{make([]byte, 40)}, 0); n != 0 || err != nil {
		t.Errorf("Write: %d, %v", n, err)
	}
}

// What the kernel's TCP hands over at once is bounded by the device.
func TestTUN_payloadMax(t *testing.T) {
	newCable(t)
	for payload, want := range map[int]uint32{0: maxGSO, 4096: 4096 + maxTCPHeader, 1 << 20: maxGSO} {
		tun, err := OpenTUN(TUNConfig{Offload: true, PayloadMax: payload})
		if err != nil {
			t.Fatal(err)
		}
		link, err := netlink.LinkByName(tun.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := link.Attrs().GSOIPv4MaxSize; got != want {
			t.Errorf("payload %d: the bound is %d bytes, want %d", payload, got, want)
		}
		for payload, want := range map[int]uint32{8192: 8192 + maxTCPHeader, 0: maxGSO} {
			if err := tun.SetPayloadMax(payload); err != nil {
				t.Fatal(err)
			}
			if link, err := netlink.LinkByName(tun.Name()); err != nil || link.Attrs().GSOIPv4MaxSize != want {
				t.Errorf("payload %d, set later: %v, the bound is %d bytes, want %d", payload, err, link.Attrs().GSOIPv4MaxSize, want)
			}
		}
		if err := tun.SetPayloadMax(-1); err == nil || !strings.Contains(err.Error(), "PayloadMax") {
			t.Errorf("a negative one, set later: %v", err)
		}
		tun.Close()
		if tun.SetPayloadMax(0) == nil {
			t.Error("a closed one has a bound")
		}
	}
	if _, err := OpenTUN(TUNConfig{PayloadMax: -1}); err == nil || !strings.Contains(err.Error(), "PayloadMax") {
		t.Errorf("a negative one: %v", err)
	}
}
