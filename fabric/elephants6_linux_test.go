package fabric

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weft/internal/elephant"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// A flow of IPv6 is counted, and goes by the port that it is pinned to while that is a next hop of its
// route. What the kernel has is remembered, whatever changes.
func TestBalance_pinsSix(t *testing.T) {
	w := newSixWays(t)
	const from, to, packets = 4321, "fd00:9::1", 50
	flow := elephant.Flow{Src: netip.MustParseAddrPort("[fd00:1::2]:4321"), Dst: netip.MustParseAddrPort("[" + to + "]:9"), Protocol: elephant.UDP}
	c := balanceOf("ecmp")
	c.Elephants = elephant.PinAndCount
	var b *Balance
	var now uint64
	w.in(func() (err error) {
		if b, err = AttachBalance(c); err == nil {
			now, err = kernel.Monotonic()
		}
		return err
	})
	defer b.Close()
	pin := func(port string) {
		w.in(func() error { return b.SetPins([]PortPin{{flow, port, now + uint64(time.Hour)}}) })
	}
	pin("p1")
	obeyed := b.obeyed
	for i := range 4 {
		pin(fmt.Sprintf("p%d", i+1))
		if by := w.sentFrom(from, to, packets); by[i] < packets-1 {
			t.Errorf("pinned to port %d: the ports have sent %v packets", i+1, by)
		}
	}
	kerneltest.Shell(t, w.ns, "ip link set p4 down") // to which it is pinned
	w.in(func() error { _, err := b.Repair(); return err })
	if by := w.sentFrom(from, to, packets); by[3] > 0 {
		t.Errorf("the port is down: %v", by)
	}
	var counts []elephant.Count
	w.in(func() (err error) { counts, err = b.Flows(nil); return err })
	if i := slices.IndexFunc(counts, func(c elephant.Count) bool { return c.Key == flow.Key() }); i < 0 || counts[i].Bytes < 5*packets*sixSize {
		t.Errorf("counted %+v, want %d bytes or more of %v", counts, 5*packets*sixSize, flow)
	}
	if s, err := b.Elephants(); err != nil || s.Pinned < 4*packets {
		t.Errorf("%+v, %v", s, err)
	}
	w.in(func() error { return b.SetPins(nil) })
	if b.obeyed != obeyed || obeyed == nil {
		t.Error("what the kernel has was forgotten")
	}
	w.in(b.Detach)
}
