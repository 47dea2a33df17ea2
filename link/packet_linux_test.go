package link

import (
	"bytes"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// nothing is the filter of a device that only sends, or its receive buffer
// would fill with what the far kernel answers.
var nothing = []bpf.RawInstruction{{Op: 6}} // ret 0

// TestPacket_carriesEverySize sends by one packet socket and receives by
// another across a veth, which hands super-segments over whole.
func TestPacket_carriesEverySize(t *testing.T) {
	c := newCable(t)
	near, far := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing}), c.openFar(t, PacketConfig{})
	for name, f := range flows(near4, far4, near6, far6) {
		transfer(t, f, near, far, sizesTo(f.maxPayload(), f.mss, 7), 32, 5)
		t.Logf("%s: %d packets, %d super-segments", name, f.pieces, f.whole)
		if f.maxPayload() > f.mss && f.whole == 0 {
			t.Errorf("%s: no super-segment", name)
		}
	}
}

// TestPacket_kernelCutsRight turns the offloads of the sending interface off.
func TestPacket_kernelCutsRight(t *testing.T) {
	c := newCable(t)
	ethtool(t, "near0", ethtoolTSO, 0)
	ethtool(t, "near0", ethtoolChecksum, 0)
	near, far := c.openNear(t, PacketConfig{Gateway: far6, Filter: nothing}), c.openFar(t, PacketConfig{})
	for name, f := range flows(near4, far4, near6, far6) {
		transfer(t, f, near, far, sizesTo(f.maxPayload(), f.mss, 499), 4, 3)
		if f.whole != 0 {
			t.Errorf("%s: %d super-segments were not cut", name, f.whole)
		}
	}
}

func TestPacketClose_unblocksRead(t *testing.T) {
	c := newCable(t)
	p := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing})
	ended := make(chan error)
	go func() {
		bufs, sizes := buffers(1, 2000)
		_, err := p.Read(bufs, sizes, 0)
		ended <- err
	}()
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
	if _, err := p.Write([][]byte{{0x45}}, 0); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
	if err := p.WriteParts([][]byte{make([]byte, 60)}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("WriteParts: %v", err)
	}
}

func TestPacket_countsDrops(t *testing.T) {
	c := newCable(t)
	near := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing})
	far := c.openFar(t, PacketConfig{ReceiveBuffer: minReceiveBuffer})
	f := &traffic{src: near4, dst: far4, proto: 17, port: 5001, mss: 1448}
	packet := func(n int) []byte { return f.packet(make([]byte, MaxSuperLen), SuperHeadroom, n) }
	broken := packet(100)
	broken[SuperHeadroom-VnetHeaderLen+6] = 200 // CsumStart
	notIP := packet(100)
	notIP[SuperHeadroom] = 0
	n, err := near.WriteSuper([][]byte{broken, notIP, make([]byte, SuperHeadroom), packet(20)}, SuperHeadroom)
	if n != 1 || err != nil || near.Drops() != 3 {
		t.Errorf("WriteSuper of three bad packets and a good one: %d, %v, %d drops", n, err, near.Drops())
	}
	if n, err := near.Write([][]byte{make([]byte, 3000)}, 0); n != 0 || err != nil || near.Drops() != 4 {
		t.Errorf("Write of nonsense: %d, %v, %d drops", n, err, near.Drops())
	}
	// Without a gateway nothing can be sent.
	if n, err := far.WriteSuper([][]byte{packet(20)}, SuperHeadroom); n != 0 || err != nil || far.Drops() != 1 {
		t.Errorf("WriteSuper without a gateway: %d, %v, %d drops", n, err, far.Drops())
	}
	if err := far.WriteParts([][]byte{packet(20)[SuperHeadroom-VnetHeaderLen:]}); err != nil || far.Drops() != 2 {
		t.Errorf("WriteParts without a gateway: %v, %d drops", err, far.Drops())
	}
	if near.WriteParts(nil) == nil || near.WriteParts([][]byte{{1, 2}}) == nil {
		t.Error("WriteParts takes what has no header")
	}
	if _, err := near.WriteSuper([][]byte{packet(20)}, SuperHeadroom-1); err == nil {
		t.Error("WriteSuper takes an offset below SuperHeadroom")
	}
	// Nobody reads: the kernel drops, and says so, also after Close.
	const flood = 100
	for range flood {
		if err := near.WriteParts([][]byte{packet(60000)[SuperHeadroom-VnetHeaderLen:]}); err != nil {
			t.Fatal(err)
		}
	}
	drops := far.Drops()
	if drops < flood/2 || drops > flood+2 {
		t.Errorf("%d drops of %d super-segments that nobody read", drops, flood)
	}
	far.Close()
	if far.Drops() != drops {
		t.Errorf("%d drops after Close, %d before", far.Drops(), drops)
	}
}

// A read tells whether it found nothing at first.
func TestPacket_waited(t *testing.T) {
	c := newCable(t)
	near, far := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing}), c.openFar(t, PacketConfig{})
	f := &traffic{src: near4, dst: far4, proto: 17, port: 5001, mss: 1448}
	send := func() {
		t.Helper()
		if err := near.WriteParts([][]byte{f.packet(make([]byte, MaxSuperLen), SuperHeadroom, 20)[SuperHeadroom-VnetHeaderLen:]}); err != nil {
			t.Fatal(err)
		}
	}
	bufs, sizes := [][]byte{make([]byte, 2000)}, []int{0}
	read := func() {
		t.Helper()
		if n, err := far.Read(bufs, sizes, 0); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	send()
	if read(); far.Waited() {
		t.Error("a packet was there, and the read has waited")
	}
	far.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := far.Read(bufs, sizes, 0); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !far.Waited() {
		t.Errorf("nothing comes: %d, %v, waited %v", n, err, far.Waited())
	}
	far.SetReadDeadline(time.Time{})
	send()
	if read(); far.Waited() {
		t.Error("a packet was there again, and the read has waited")
	}
}

// TestPacketRead_closesGaps: packets that are too long for their buffer leave no
// hole.
func TestPacketRead_closesGaps(t *testing.T) {
	c := newCable(t)
	near, far := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing}), c.openFar(t, PacketConfig{})
	f := &traffic{src: near4, dst: far4, proto: 17, port: 5001, mss: 1448}
	var out [][]byte
	for _, n := range []int{10, 900, 20, 901, 902, 30} {
		out = append(out, f.packet(make([]byte, 2000), SuperHeadroom, n))
	}
	near.WriteSuper(out, SuperHeadroom)
	in, sizes := buffers(8, SuperHeadroom+500)
	defer unhang(far)()
	var got []int
	for len(got) < 3 {
		n, err := far.ReadSuper(in, sizes, SuperHeadroom)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if p := in[i][SuperHeadroom : SuperHeadroom+sizes[i]]; f.mine(p) {
				got = append(got, sizes[i]-f.headerLen())
				if want := out[2*(len(got)-1)+len(got)/3][SuperHeadroom:]; !bytes.Equal(p, want) {
					t.Errorf("packet %d: % x, want % x", len(got), p, want)
				}
			}
		}
	}
	if far.Drops() != 3 {
		t.Errorf("%d drops, want 3", far.Drops())
	}
}

// TestPacket_interfaceGone: Read goes on when the interface was down and ends
// when it is removed.
func TestPacket_interfaceGone(t *testing.T) {
	c := newCable(t)
	near, far := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing}), c.openFar(t, PacketConfig{})
	l, err := netlink.LinkByName("near0")
	if err != nil {
		t.Fatal(err)
	}
	c.do(func() {
		f, _ := netlink.LinkByName("far0")
		if err := errors.Join(netlink.LinkSetDown(f), netlink.LinkSetUp(f)); err != nil {
			t.Error(err)
		}
	})
	c.settle(t)
	transfer(t, &traffic{src: near4, dst: far4, proto: 6, port: 5001, mss: 1448}, near, far, []int{10, 5000}, 2, 0)
	if err := netlink.LinkDel(l); err != nil {
		t.Fatal(err)
	}
	defer unhang(far)()
	in, sizes := buffers(1, 2000)
	for err == nil {
		_, err = far.Read(in, sizes, 0)
	}
	if !errors.Is(err, errGone) {
		t.Errorf("Read: %v", err)
	}
}

// TestPacket_fallsBackForGood injects a kernel that refuses the second packet of
// a batch.
func TestPacket_fallsBackForGood(t *testing.T) {
	tests := []struct {
		errno unix.Errno
		gso   bool
		falls bool
	}{
		{unix.EINVAL, true, true},
		{unix.EIO, true, true},
		{unix.EOPNOTSUPP, true, true},
		{unix.EINVAL, false, false},
		{unix.ENOBUFS, true, false},
		{unix.EAGAIN, true, false},
		{unix.EMSGSIZE, true, false},
		{unix.EPERM, false, false},
		{unix.ENETDOWN, false, false},
	}
	c := newCable(t)
	for _, tt := range tests {
		p := c.openNear(t, PacketConfig{Gateway: far4, Filter: nothing})
		calls := 0
		p.wr.send = func(_ *batch, _ uintptr, first, end int) (int, unix.Errno) {
			if calls++; calls == 1 {
				return 1, 0
			}
			if first == 1 {
				return 0, tt.errno
			}
			return end - first, 0
		}
		var bufs [][]byte
		for i := range 4 {
			f := &traffic{src: near4, dst: far4, proto: 6, mss: 1448}
			if tt.gso && i == 1 {
				f.mss = 10
			}
			bufs = append(bufs, f.packet(make([]byte, 2000), SuperHeadroom, 100))
		}
		if n, err := p.WriteSuper(bufs, SuperHeadroom); n != 3 || err != nil || p.Drops() != 1 || calls != 3 {
			t.Errorf("%v: %d, %v, %d drops, %d calls", tt.errno, n, err, p.Drops(), calls)
		}
		// What the host's own kernel drops is told from what a device that is down does.
		if got, want := p.Denied() == 1, tt.errno == unix.ENOBUFS || tt.errno == unix.EPERM; got != want || p.Denied() > 1 {
			t.Errorf("%v: %d denied", tt.errno, p.Denied())
		}
		if o := p.Offloads(); (p.MaxSuper() == 0) != tt.falls || (o.Refused == 1) != tt.falls {
			t.Errorf("%v, GSO %v: MaxSuper %d, %v", tt.errno, tt.gso, p.MaxSuper(), o)
		}
	}
}
