package flowcell_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/flowcell"
	"weft/link"
)

// fork is a kernel that forwards from one TUN to two others, which are equal next hops of
// a route: a switch below a bounce, with two links to the next one.
type fork struct {
	in  *link.TUN
	out [2]*link.TUN
}

// newFork returns one whose ways out take super-segments, or do not.
func newFork(t *testing.T, supers bool) *fork {
	if os.Geteuid() != 0 {
		t.Skip("needs root: opens devices in a network namespace")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	setting(t, "net/ipv6/conf/all/forwarding", 1)
	f := new(fork)
	f.in = open(t, "in0", true)
	route := &netlink.Route{Dst: &net.IPNet{IP: net.ParseIP("2001:db8:3::"), Mask: net.CIDRMask(48, 128)}}
	for i := range f.out {
		name := fmt.Sprintf("out%d", i)
		f.out[i] = open(t, name, supers)
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		route.MultiPath = append(route.MultiPath, &netlink.NexthopInfo{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(fmt.Sprintf("fe80::%d", 1+i))})
	}
	if err := netlink.RouteAdd(route); err != nil {
		t.Skipf("no IPv6 route with two next hops: %v", err)
	}
	return f
}

func open(t *testing.T, name string, supers bool) *link.TUN {
	tun, err := link.OpenTUN(link.TUNConfig{Name: name, Offload: supers, NoForwardCheck: true})
	if err != nil {
		t.Skipf("no TUN: %v", err)
	}
	t.Cleanup(func() { tun.Close() })
	return tun
}

func setting(t *testing.T, name string, value int) {
	if err := os.WriteFile("/proc/sys/"+name, fmt.Appendln(nil, value), 0); err != nil {
		t.Skip(err)
	}
}

// count returns how many of n packets have left by each way, and the labels.
func (f *fork) count(t *testing.T, n int) (by [2]int, labels [2]map[uint32]int) {
	for i := range f.out {
		labels[i] = make(map[uint32]int)
	}
	bufs, sizes := make([][]byte, 64), make([]int, 64)
	for i := range bufs {
		bufs[i] = make([]byte, link.SuperHeadroom+link.MaxSuperLen)
	}
	for end := time.Now().Add(time.Minute); by[0]+by[1] < n; {
		for i, o := range f.out {
			o.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			got, _ := o.Read(bufs, sizes, link.SuperHeadroom)
			for _, b := range bufs[:got] {
				p := b[link.SuperHeadroom:]
				if p[6] != flowcell.ProtoTCP {
					continue // the kernel's own
				}
				by[i]++
				labels[i][binary.BigEndian.Uint32(p)&0xfffff]++
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d packets have arrived", by[0]+by[1], n)
		}
	}
	return by, labels
}

// segment is one of a connection, with a label.
func segment(i int, payload int) []byte {
	b := make([]byte, link.SuperHeadroom+60+payload)
	p := b[link.SuperHeadroom:]
	binary.BigEndian.PutUint32(p, 6<<28|0x5cafe)
	binary.BigEndian.PutUint16(p[4:], uint16(20+payload))
	p[6], p[7] = flowcell.ProtoTCP, 64
	copy(p[8:], netip.MustParseAddr("2001:db8:1::1").AsSlice())
	copy(p[24:], netip.MustParseAddr("2001:db8:3::3").AsSlice())
	binary.BigEndian.PutUint16(p[40:], 40000)
	binary.BigEndian.PutUint16(p[42:], 80)
	binary.BigEndian.PutUint32(p[44:], uint32(i*payload))
	p[52], p[53] = 5<<4, flowcell.FlagACK
	return b
}

// A Linux switch hashes the label by default: what has one label goes one way, and
// flowcells spread over both ways. If a segment's index were in the label, flowcells would
// be divided. By five-tuples (policy 1) nothing spreads.
func TestLabel_splitsOnlyUnits(t *testing.T) {
	f := newFork(t, true)
	const cells, each = 16, 45
	send := func(number func(cell, index int) flowcell.Number) (divided int, by [2]int) {
		for cell := range cells {
			var bufs [][]byte
			for i := range each {
				b := segment(cell*each+i, 100)
				number(cell, i).Stamp(b[link.SuperHeadroom:])
				bufs = append(bufs, b)
			}
			if n, err := f.in.WriteSuper(bufs, link.SuperHeadroom); n != each {
				t.Fatalf("wrote %d packets: %v", n, err)
			}
			ways, _ := f.count(t, each)
			if ways[0] > 0 && ways[1] > 0 {
				divided++
			}
			by[0], by[1] = by[0]+ways[0], by[1]+ways[1]
		}
		return divided, by
	}
	first := func(cell, _ int) flowcell.Number { return flowcell.MakeNumber(uint16(1000+cell), 0) }
	index := func(cell, i int) flowcell.Number { return flowcell.MakeNumber(uint16(1000+cell), uint8(i)) }
	if divided, by := send(first); divided > 0 || by[0] == 0 || by[1] == 0 {
		t.Errorf("one label for a flowcell: %d of %d were divided; %v by each way", divided, cells, by)
	}
	if divided, by := send(index); divided < cells*3/4 {
		t.Errorf("a label for a segment: only %d of %d were divided; %v by each way: then the index could be in the label", divided, cells, by)
	}
	setting(t, "net/ipv6/fib_multipath_hash_policy", 1)
	for name, number := range map[string]func(cell, i int) flowcell.Number{"first": first, "index": index} {
		if divided, by := send(number); divided > 0 || by[0] > 0 && by[1] > 0 {
			t.Errorf("%s, a switch that hashes five-tuples: %d were divided; %v by each way", name, divided, by)
		}
	}
}

// A kernel that cuts a super-segment of IPv6 copies the label: an index would not count.
func TestLabel_isCopiedWhereAKernelCuts(t *testing.T) {
	f := newFork(t, false)
	const mss, each = 1000, 20
	b := segment(0, mss*each)
	p := b[link.SuperHeadroom:]
	n := flowcell.MakeNumber(77, 0)
	n.Stamp(p)
	h := link.VnetHeader{Flags: link.VnetNeedsCsum, GSOType: link.VnetGSOTCPv6, HdrLen: 60, GSOSize: mss, CsumStart: 40, CsumOffset: 16}
	h.Put((*[link.VnetHeaderLen]byte)(b[link.SuperHeadroom-link.VnetHeaderLen:]))
	if n, err := f.in.WriteSuper([][]byte{b}, link.SuperHeadroom); n != 1 {
		t.Fatal(err)
	}
	by, labels := f.count(t, each)
	want := 0x50000 | uint32(n)
	if way := max(labels[0][want], labels[1][want]); way != each {
		t.Errorf("%d segments of %d by one way with label %05x: %v, %x", way, each, want, by, labels)
	}
}
