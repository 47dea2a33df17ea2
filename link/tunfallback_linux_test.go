package link

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenTUN_fallsBackToWater has a kernel without virtio headers.
func TestOpenTUN_fallsBackToWater(t *testing.T) {
	c := newCable(t)
	old := func(TUNConfig) (*opened, error) { return nil, errors.New("no such flag") }
	tun, err := openTUNBy(old, TUNConfig{Offload: true, Queues: 2, Routes: behindNets})
	if err != nil {
		t.Fatal(err)
	}
	defer tun.Close()
	if got := tun.Offloads().String(); got != "water: no offloads, 2 queues (opened without offloads: no such flag)" || tun.MaxSuper() != 0 {
		t.Errorf("%s, MaxSuper %d", got, tun.MaxSuper())
	}
	far := c.openFar(t, PacketConfig{})
	for _, f := range flows(behind4, far4, behind6, far6) {
		transfer(t, f, tun.Queue(1), far, []int{1, 1000, f.mss}, 2, 2)
	}
	if _, err := openTUNBy(old, TUNConfig{Name: tun.Name(), Offload: true}); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EBUSY) {
		t.Errorf("what is in the way of water is not told: %v", err)
	}
}

// TestTUNNegotiate_takesTheMost has kernels that know some flags only.
func TestTUNNegotiate_takesTheMost(t *testing.T) {
	for knows, want := range map[int]int{
		0x7f: offloadSteps[0],
		0x1f: offloadSteps[1],
		0x07: offloadSteps[2],
		0x03: offloadSteps[3],
		0x01: offloadSteps[4],
		0x00: 0,
	} {
		got, refused := negotiate(func(flags int) error {
			if flags&^knows != 0 {
				return unix.EINVAL
			}
			return nil
		})
		if got != want || (refused == nil) != (want == offloadSteps[0]) {
			t.Errorf("a kernel that knows %#x: %#x, %v; want %#x", knows, got, refused, want)
		}
	}
}

// TestTUN_fallsBackForGood injects a kernel that refuses super-segments.
func TestTUN_fallsBackForGood(t *testing.T) {
	tests := []struct {
		errno unix.Errno
		gso   bool
		falls bool
	}{
		{unix.EINVAL, true, true},
		{unix.EOPNOTSUPP, true, true},
		{unix.EINVAL, false, false},
		{unix.EIO, true, false}, // the interface is down
		{unix.ENOBUFS, true, false},
		{unix.EAGAIN, true, false},
		{unix.ENOMEM, true, false},
	}
	for _, tt := range tests {
		for _, parts := range []bool{false, true} {
			inNamespace(t, "1")
			tun := openTUN(t, TUNConfig{Offload: true, Queues: 2})
			q := tun.Queue(1)
			q.wr.writev = func(uintptr, []unix.Iovec) unix.Errno { return tt.errno }
			f := &traffic{src: near4, dst: far4, proto: 6, mss: 1448}
			size := 100
			if tt.gso {
				size = 3000
			}
			b := f.packet(make([]byte, 4000), SuperHeadroom, size)
			var err error
			if parts {
				err = q.WriteParts([][]byte{b[SuperHeadroom-VnetHeaderLen:]})
			} else {
				_, err = q.WriteSuper([][]byte{b}, SuperHeadroom)
			}
			if err != nil || q.Drops() != 1 || tun.Drops() != 1 {
				t.Errorf("%v: %v, %d drops", tt.errno, err, q.Drops())
			}
			o := tun.Offloads()
			if fell := tun.MaxSuper() == 0; fell != tt.falls || (o.Refused == 1) != tt.falls || strings.Contains(o.Fallback, "refused a super-segment") != tt.falls {
				t.Errorf("%v, GSO %v, in parts %v: fell back: %v; %v", tt.errno, tt.gso, parts, fell, o)
			}
			if tun.Queue(0).MaxSuper() != tun.MaxSuper() {
				t.Errorf("%v: queues differ", tt.errno)
			}
		}
	}
}

// TestTUN_afterTheFallback: packets go on, super-segments are still read.
func TestTUN_afterTheFallback(t *testing.T) {
	c := newCable(t)
	tun := behind(t, TUNConfig{Offload: true})
	far := c.openFar(t, PacketConfig{Gateway: near4})
	tun.super.refuse(unix.EINVAL)
	out, in := flows(behind4, far4, behind6, far6), flows(far4, behind4, far6, behind6)
	for name := range out {
		transfer(t, out[name], tun, far, []int{1, 1000, out[name].mss}, 2, 2)
	}
	f := in["TCP IPv4"]
	transfer(t, f, far, tun, []int{30000}, 1, 0)
	if f.whole != 1 {
		t.Error("no super-segment was read")
	}
}
