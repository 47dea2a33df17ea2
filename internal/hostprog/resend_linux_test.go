package hostprog

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/flowcell"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/policy"
)

// flowValue is struct flow of bpf/cutter.h.
type flowValue struct {
	Group, Bytes, Highest, Last  uint32
	Segments, Cell, Step, Unused uint16
}

// known returns the program's flows, and flowOf the key of a packet's.
func (s *sprayed) known(t *testing.T) *ebpf.Map {
	t.Helper()
	flows, err := kernel.ProgramMap(s.spray.at.Prog, "flows")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flows.Close() })
	return flows
}

func flowOf(packet []byte) [12]byte { return [12]byte(packet[12:24]) }

// onTime has the oracle go by the time at which the program has sent each packet.
func (s *sprayed) onTime(t *testing.T) {
	t.Helper()
	flows := s.known(t)
	s.oracle.cut.last = func(packet []byte) uint32 {
		var v flowValue
		if err := flows.Lookup(flowOf(packet), &v); err != nil {
			t.Fatalf("the flow of\n%s%v", dump(packet), err)
		}
		return v.Last
	}
	s.oracle.cut.now = func() uint32 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		return uint32(now.Nano() >> 10)
	}
}

// age has a packet's flow send nothing for a time, on the program's clock and on
// the oracle's.
func (s *sprayed) age(t *testing.T, flows *ebpf.Map, packet []byte, pause time.Duration) {
	t.Helper()
	var v flowValue
	if flows.Lookup(flowOf(packet), &v) != nil {
		return // has not begun
	}
	v.Last -= uint32(pause / tick)
	if err := flows.Put(flowOf(packet), &v); err != nil {
		t.Fatal(err)
	}
	var p flowcell.Packet
	if err := p.Parse(packet); err != nil {
		t.Fatal(err)
	}
	if f := s.oracle.cut.flows[p.Flow]; f != nil {
		f.tick = v.Last
	}
}

// pathsOf runs a packet through the program so many times, after a pause each, and
// returns how often it took each path.
func (s *sprayed) pathsOf(t *testing.T, packet []byte, times int, pause func()) map[uint32]int {
	t.Helper()
	paths := make(map[uint32]int)
	for range times {
		run := ebpf.RunOptions{Data: frameOf(packet), DataOut: make([]byte, 512)}
		if _, err := s.spray.at.Prog.Run(&run); err != nil {
			t.Fatal(err)
		}
		paths[binary.BigEndian.Uint32(run.DataOut[kernel.EthernetHeader+16:])]++
		pause()
	}
	return paths
}

// What TCP sends again after a timeout does not follow into the hole what was
// lost: one segment, sent 30 times 20 ms apart, is spread over all paths.
func TestSpray_resentAfterTimeoutsTakesAllPaths(t *testing.T) {
	s := newCutting(t, policy.Options{})
	paths := s.pathsOf(t, s.numberedSegment(0x1234), 30, func() { time.Sleep(20 * time.Millisecond) })
	if len(paths) != 4 {
		t.Errorf("30 times the same segment takes %d of 4 paths", len(paths))
	}
}

// The same of what opens and closes connections. All copies of a SYN-ACK have ID 0,
// those of others count on.
func TestSpray_resentWithoutPayloadTakesAllPaths(t *testing.T) {
	s := newCutting(t, policy.Options{})
	for name, flags := range map[string]byte{"SYN": 0x02, "SYN-ACK": 0x12, "FIN": 0x11, "RST": 0x04} {
		for _, data := range []bool{false, true} {
			packet := s.flagged(flags, 90+2*flags)
			if data {
				packet[23]++
				s.pathsOf(t, s.flagged(0, packet[23]), 1, func() { time.Sleep(2 * flowcell.LeastTimeout) })
			}
			if paths := s.pathsOf(t, packet, 60, func() {}); len(paths) != 4 {
				t.Errorf("60 times the same %s, data before it %v, takes %d of 4 paths", name, data, len(paths))
			}
		}
	}
}

// flagged is a segment with flags and without payload, or one of data if there are
// none, of the flow from a port.
func (s *sprayed) flagged(flags, port byte) []byte {
	p := s.numberedSegment(0)
	p[23] = port
	if p[33] = 0x10; flags != 0 {
		p = p[:40]
		p[3], p[33] = 40, flags
	}
	binary.BigEndian.PutUint16(p[10:], 0)
	binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
	return p
}

// Data new and sent again, soon or late, is numbered as the Cutter has it.
func TestSpray_cutsResendsAsTheCutter(t *testing.T) {
	s := newCutting(t, policy.Options{FlowcellBytes: policy.MinFlowcellBytes})
	flows := s.known(t)
	const seed = 21
	rng := rand.New(rand.NewPCG(seed, 0))
	pauses := []time.Duration{0, 0, 0, 0, time.Millisecond, flowcell.LeastTimeout - 2*time.Millisecond,
		flowcell.LeastTimeout, flowcell.LeastTimeout + tick, 20 * time.Millisecond, time.Hour}
	end := [3]uint32{5, 1 << 31, 1<<32 - 9000}
	timeouts, soon := 0, 0
	for i := range 20_000 {
		flow := rng.IntN(len(end))
		p := append(s.numberedSegment(uint16(rng.Uint32())), make([]byte, rng.IntN(1400))...)
		payload := uint32(len(p) - 40)
		seq := end[flow]
		if rng.IntN(3) == 0 && i > 50 {
			seq -= uint32(rng.IntN(3000))
		}
		p[2], p[3], p[23] = byte(len(p)>>8), byte(len(p)), byte(80+flow)
		binary.BigEndian.PutUint32(p[24:], seq)
		binary.BigEndian.PutUint16(p[10:], 0)
		binary.BigEndian.PutUint16(p[10:], ^kerneltest.OnesSum(p[:20]))
		pause := pauses[rng.IntN(len(pauses))]
		s.age(t, flows, p, pause)
		if again := int32(seq+payload-end[flow]) <= 0; again && pause > flowcell.LeastTimeout {
			timeouts++
		} else if again {
			soon++
		} else {
			end[flow] = seq + payload
		}
		s.runLong(t, p)
		if t.Failed() {
			t.Fatalf("seed %d, packet %d", seed, i)
		}
	}
	st := s.stats(t)
	if flows, cells := s.oracle.cut.counts(); st.Flows != flows || st.Flowcells != cells || timeouts < 1000 || soon < 1000 {
		t.Errorf("%d flows and %d flowcells counted, want %d and %d; %d sent again after a timeout, %d soon",
			st.Flows, st.Flowcells, flows, cells, timeouts, soon)
	}
}

// runLong is run for packets of up to an MTU.
func (s *sprayed) runLong(t *testing.T, packet []byte) {
	t.Helper()
	run := ebpf.RunOptions{Data: frameOf(packet), DataOut: make([]byte, 2048)}
	if _, err := s.spray.at.Prog.Run(&run); err != nil {
		t.Fatal(err)
	}
	o := s.oracle
	o.mtu = 1 << 16
	got := run.DataOut[kernel.EthernetHeader:]
	if want, _ := o.sentAs(packet, 1, 0, got); !bytes.Equal(got, want) {
		t.Errorf("sent\n%sgot\n%swant\n%s", dump(packet), dump(got), dump(want))
	}
}

// An embedded stack's FINs are drawn anew, too, when it says so by their number.
func TestSpray_resentFINIsDrawnByItsNumber(t *testing.T) {
	d := newDrawing(t, "rand", encap.CarrierIPIP)
	fin := func(cell uint16) []byte {
		p := d.flagged(0x11, 80)
		flowcell.MakeNumber(cell, 0).Stamp(p)
		return p
	}
	p := d.numberedSegment(uint16(flowcell.MakeNumber(5, 0)))
	last := d.path(t, p)
	used := make(map[int]bool)
	for i := range uint16(60) {
		if path := d.path(t, fin(5)); path != last {
			t.Fatalf("FIN of the last flowcell by path %d, data by %d", path, last)
		}
		used[d.path(t, fin(6+i))] = true
	}
	if len(used) != 4 {
		t.Errorf("60 FINs of other flowcells take %d of 4 paths", len(used))
	}
}
