package fabric

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// classifyRun is the program without a network, at an edge switch 10.0.1.1 with some ports
// up.
type classifyRun struct {
	t                      *testing.T
	Prog                   *ebpf.Program `ebpf:"weft_classify"`
	Flows, Loads, Settings *ebpf.Map
	Counters               *ebpf.Map
	ports                  uint32
}

func newClassifyRun(t *testing.T, ports int) *classifyRun {
	t.Helper()
	kerneltest.NeedRoot(t)
	spec, err := loadClassify()
	if err != nil {
		t.Fatal(err)
	}
	coll, err := ebpf.NewCollection(spec)
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skipf("no program can be loaded here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	r := &classifyRun{t: t, Prog: coll.Programs[classifyProgWeftClassify], Flows: coll.Maps[classifyMapFlows],
		Loads: coll.Maps[classifyMapLoads], Settings: coll.Maps[classifyMapSettings], Counters: coll.Maps[classifyMapCounters]}
	r.ports = uint32(ports)
	r.live(math.MaxUint64)
	return r
}

// live says until when there is an agent, in ns of the monotonic clock.
func (r *classifyRun) live(until uint64) {
	r.t.Helper()
	if err := r.Settings.Put(uint32(0), classifySettings{Below: [4]byte{10, 0, 1, 0}, Mask: [4]byte{255, 255, 255, 0}, Ports: r.ports, Until: until}); err != nil {
		r.t.Fatal(err)
	}
}

// mark returns the mark of a packet that came with one of the host ID's program.
func (r *classifyRun) mark(src, dst string, protocol byte, length int) uint32 {
	r.t.Helper()
	frame := make([]byte, max(length, 64))
	binary.BigEndian.PutUint16(frame[12:], 0x800)
	ip := frame[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	s, d := netip.MustParseAddr(src).As4(), netip.MustParseAddr(dst).As4()
	copy(ip[12:], s[:])
	copy(ip[16:], d[:])
	in, out := make([]byte, 192), make([]byte, 192)
	binary.NativeEndian.PutUint32(in[8:], hostIDMark)
	code, err := r.Prog.Run(&ebpf.RunOptions{Data: frame, Context: in, ContextOut: out})
	if err != nil {
		r.t.Fatal(err)
	}
	if int32(code) != kernel.TCUnspec {
		r.t.Fatalf("the program ends the chain: %d", int32(code))
	}
	return binary.NativeEndian.Uint32(out[8:])
}

const hostIDMark = 0xab000000 | suffixBit | 63

// All packets of a flow go by one port. A new one gets that which has carried least, the
// first of equals (thesis §3.1.6).
func TestClassify_newFlowsGetTheLeastLoadedPort(t *testing.T) {
	r := newClassifyRun(t, 3)
	type pair struct{ src, dst netip.Addr }
	chosen := make(map[pair]int)
	var loads [3]int
	for i := range 300 {
		n := i * i % 37
		f := pair{netip.AddrFrom4([4]byte{10, 0, 1, byte(2 + n%5)}), netip.AddrFrom4([4]byte{10, 2, byte(n), 2})}
		length := 700 + n*11 + i
		want, known := chosen[f]
		if !known {
			want = slices.Index(loads[:], slices.Min(loads[:]))
			chosen[f] = want
		}
		loads[want] += length
		if got := r.mark(f.src.String(), f.dst.String(), 6, length); got != 0xab000000|suffixBit|uint32(want) {
			t.Fatalf("packet %d, flow %d: mark %#x, want that of port %d", i, n, got, want)
		}
	}
}

func TestClassify_leavesAloneWhatStaysBelow(t *testing.T) {
	r := newClassifyRun(t, 2)
	for name, got := range map[string]uint32{
		"a host of the rack":         r.mark("10.0.1.2", "10.0.1.3", 6, 100),
		"a source that is not below": r.mark("10.0.2.2", "10.3.0.2", 6, 100),
		"an outer header":            r.mark("10.0.1.2", "10.4.1.1", 4, 100),
	} {
		if got != hostIDMark {
			t.Errorf("%s: mark %#x, want %#x", name, got, uint32(hostIDMark))
		}
	}
	if got := r.mark("10.0.1.2", "10.0.0.3", 6, 100); got != 0xab000000|suffixBit {
		t.Errorf("another rack of the pod: mark %#x", got)
	}
}

// Flows of a dead port get another one; if all are dead the host ID's mark stays.
func TestClassify_avoidsDeadPorts(t *testing.T) {
	r := newClassifyRun(t, 2)
	dead := func(port, dead uint32) {
		if err := r.Loads.Put(port, classifyLoad{Dead: dead}); err != nil {
			t.Fatal(err)
		}
	}
	mark := func() uint32 { return r.mark("10.0.1.2", "10.3.0.2", 17, 100) & markMask &^ suffixBit }
	first := mark()
	dead(first, 1)
	if got := mark(); got != 1-first {
		t.Errorf("with port %d dead: by port %d", first, got)
	}
	dead(first, 0)
	if got := mark(); got != 1-first {
		t.Errorf("the flow went back to port %d", got)
	}
	dead(0, 1)
	dead(1, 1)
	if got := mark(); got != 63 {
		t.Errorf("all ports dead: by port %d", got)
	}
}

// Without an agent packets go by host ID, those of known flows, too, and they count.
func TestClassify_withoutAnAgentHostIDsChoose(t *testing.T) {
	r := newClassifyRun(t, 2)
	mark := func() uint32 { return r.mark("10.0.1.2", "10.3.0.2", 17, 100) }
	if mark() == hostIDMark {
		t.Fatal("a new flow got no port")
	}
	now, err := kernel.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	r.live(now - 1)
	if got := mark(); got != hostIDMark {
		t.Errorf("the agent has died: mark %#x, want that of the host ID", got)
	}
	r.live(now + uint64(time.Hour))
	if mark() == hostIDMark {
		t.Error("the agent is back, and the flow has no port")
	}
	var s ClassifierStats
	if err := kernel.SumCounters(r.Counters, s.sums()...); err != nil || s.Late != 1 || s.Flows != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A source has its share of the table, and others have theirs. What has a port keeps it.
func TestClassify_boundsFlowsOfASource(t *testing.T) {
	r := newClassifyRun(t, 2)
	const burst, some = 512, 2000
	got := 0
	for i := range some {
		if r.mark("10.0.1.2", netip.AddrFrom4([4]byte{10, 3, byte(i >> 8), byte(i)}).String(), 6, 100) != hostIDMark {
			got++
		}
	}
	var s ClassifierStats
	if err := kernel.SumCounters(r.Counters, s.sums()...); err != nil || int(s.Flows) != got || int(s.Full) != some-got {
		t.Errorf("%d flows have a port, counted %+v, %v", got, s, err)
	}
	if got < burst || got == some {
		t.Errorf("%d of %d flows of a source have a port, want %d and those of the time that it took", got, some, burst)
	}
	if r.mark("10.0.1.2", "10.3.0.0", 6, 100) == hostIDMark {
		t.Error("the first flow has lost its port")
	}
	if r.mark("10.0.1.3", "10.3.0.0", 6, 100) == hostIDMark {
		t.Error("another source gets no port")
	}
}
