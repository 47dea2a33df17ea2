package hostprog

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/encap"
	"weft/internal/kernel/kerneltest"
	"weft/topology"
)

// What is chosen holds for flowcells that begin while it is valid, to that rack,
// and for no others.
func TestSpray_Choose(t *testing.T) {
	d := newDrawing(t, "luopan", encap.CarrierIPIP)
	under := d.path(t, d.segment(1, 7, 0))
	for path := range d.way.paths.Count() {
		if err := d.spray.Choose(d.rack, path, time.Hour); err != nil {
			t.Fatal(err)
		}
		for cell := range uint16(20) {
			if p := d.path(t, d.segment(2+uint16(path), cell, 0)); p != path {
				t.Fatalf("flowcell %d by path %d, chosen was %d", cell, p, path)
			}
		}
		if p := d.path(t, d.segment(1, 7, uint8(path)+1)); p != under {
			t.Errorf("path %d was chosen: the flowcell under way by %d went to %d", path, under, p)
		}
	}
	if st := d.stats(t); st.Chosen != 80 {
		t.Errorf("%d flowcells as chosen, want 80", st.Chosen)
	}

	// Others' racks are not concerned, nor what is not TCP, nor bare acknowledgements.
	spread := func(what string, packet func(i uint16) []byte) {
		t.Helper()
		seen := make(map[int]bool)
		for i := range uint16(200) {
			seen[d.path(t, packet(i))] = true
		}
		if len(seen) < 2 {
			t.Errorf("%s: all by path %v", what, seen)
		}
	}
	far := d.dst
	d.dst = kerneltest.Hosts(d.top)[8]
	spread("another rack", func(i uint16) []byte { return d.segment(9, i, 0) })
	d.dst = far
	spread("acknowledgements", func(i uint16) []byte {
		p := d.segment(2, i, 0)[:40]
		p[3] = 40
		binary.BigEndian.PutUint16(p[10:], 0)
		binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
		return p
	})

	// At the end of its validity, and withdrawn.
	if err := d.spray.Choose(d.rack, 1, 0); err != nil {
		t.Fatal(err)
	}
	spread("withdrawn", func(i uint16) []byte { return d.segment(10, i, 0) })
	if err := d.spray.Choose(d.rack, 1, 30*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	time.Sleep(31 * time.Millisecond)
	spread("no longer valid", func(i uint16) []byte { return d.segment(11, i, 0) })
}

// A change of topology that concerns the rack voids what was chosen, since steps
// mean other paths; one that does not, leaves it. No dead path can be chosen.
func TestSpray_ChooseAndSetTopology(t *testing.T) {
	d := newDrawing(t, "luopan", encap.CarrierSRv6)
	all := func(what string, port uint16, path int) {
		t.Helper()
		for cell := range uint16(100) {
			if p := d.path(t, d.segment(port, cell, 0)); p != path {
				t.Fatalf("%s: flowcell %d by path %d, want %d", what, cell, p, path)
			}
		}
	}
	set := func(top *topology.Topology) {
		t.Helper()
		if err := d.spray.SetTopology(top); err != nil {
			t.Fatal(err)
		}
		d.oracle.table = mustTableBy(t, top, d.src.ID, mustPolicy(t, "luopan"), encap.CarrierSRv6)
	}
	if err := d.spray.Choose(d.rack, 3, time.Hour); err != nil {
		t.Fatal(err)
	}
	all("chosen", 1, 3)
	link, err := d.top.LinkByName("a1.2-c1.1") // of another pod
	if err != nil {
		t.Fatal(err)
	}
	set(d.top.Without(link.ID))
	all("of no concern", 2, 3)
	core, _ := d.top.Lookup("3.0")
	set(d.top.WithoutNode(core.ID))
	seen := make(map[int]bool)
	for cell := range uint16(200) {
		seen[d.path(t, d.segment(3, cell, 0))] = true
	}
	if len(seen) != 3 || seen[0] {
		t.Errorf("paths %v without the first core", seen)
	}
	if err := d.spray.Choose(d.rack, 0, time.Hour); err == nil || !strings.Contains(err.Error(), "path 0 to 10.3.1.0/24 is not live") {
		t.Errorf("a dead path: %v", err)
	}
	if err := d.spray.Choose(d.rack, 3, time.Hour); err != nil {
		t.Fatal(err)
	}
	all("another step, the same path", 4, 3)
}

func TestSpray_ChooseErrors(t *testing.T) {
	d := newDrawing(t, "luopan", encap.CarrierIPIP)
	own := rackOf(d.src.Addr)
	for _, c := range []struct {
		rack netip.Prefix
		path int
		want string
	}{
		{own, 0, "10.0.0.0/24 is no other rack"},
		{netip.MustParsePrefix("192.0.2.0/24"), 0, "is no other rack"},
		{netip.Prefix{}, 0, "is no other rack"},
		{d.rack, 4, "path 4 to 10.3.1.0/24 is not live"},
		{d.rack, -1, "is not live"},
	} {
		if err := d.spray.Choose(c.rack, c.path, time.Second); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, path %d: %v; does not say %q", c.rack, c.path, err, c.want)
		}
	}
	if err := d.spray.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.spray.Choose(d.rack, 0, time.Second); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after Close: %v", err)
	}
	if err := d.spray.Active(func(netip.Prefix, netip.Addr, uint64) {}); err == nil {
		t.Error("Active after Close")
	}
	other := newDrawing(t, "presto", encap.CarrierIPIP)
	if err := other.spray.Choose(d.rack, 0, time.Second); err == nil || !strings.Contains(err.Error(), "policy presto does not take paths") {
		t.Errorf("presto: %v", err)
	}
	other.path(t, other.segment(1, 0, 0))
	if err := other.spray.Active(func(r netip.Prefix, _ netip.Addr, _ uint64) { t.Errorf("presto: active %v", r) }); err != nil {
		t.Error(err)
	}
}

// Who asks learns which racks flowcells have begun to since, and may choose at once.
func TestSpray_Active(t *testing.T) {
	d := newDrawing(t, "luopan", encap.CarrierSRv6)
	asked := func() (got []string) {
		err := d.spray.Active(func(rack netip.Prefix, host netip.Addr, n uint64) {
			got = append(got, fmt.Sprintf("%v %v %d", rack, host, n))
			if err := d.spray.Choose(rack, 0, time.Second); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := asked(); got != nil {
		t.Errorf("before anything: %v", got)
	}
	hosts := kerneltest.Hosts(d.top)
	for i, host := range []topology.Node{hosts[15], hosts[14], hosts[4], hosts[2]} {
		d.dst = host
		for cell := range uint16(i + 1) {
			d.path(t, d.segment(uint16(i), cell, 0))
			d.path(t, d.segment(uint16(i), cell, 1))
		}
	}
	want := []string{"10.0.1.0/24 10.0.1.2 4", "10.1.0.0/24 10.1.0.2 3", "10.3.1.0/24 10.3.1.2 3"}
	if got := asked(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := asked(); got != nil {
		t.Errorf("nothing since: %v", got)
	}
	if p := d.path(t, d.segment(1, 9, 0)); p != 0 {
		t.Errorf("path %d, chosen was 0", p)
	}
}
