package hostprog

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// steerTest is a host with the program at its uplink, a reader's packet socket
// and a neighbour.
type steerTest struct {
	near, far string // namespaces
	steer     *Steer
	reader    int              // packet socket with the filter
	out       *kerneltest.Wire // at the neighbour
}

// Verdicts of a tc program (linux/pkt_cls.h).
const (
	actShot   = 2
	actUnspec = 1<<32 - 1
)

func newSteerTest(t *testing.T, rules []SteerRule) *steerTest {
	t.Helper()
	s := &steerTest{near: kerneltest.Namespace(t, "near"), far: kerneltest.Namespace(t, "far")}
	s.out = neighbour(t, s.near, s.far)
	err := kernel.InNamespace(s.near, func() (err error) {
		dev, err := net.InterfaceByName("p0")
		if err != nil {
			return err
		}
		if s.steer, err = AttachSteer(SteerConfig{Uplink: "p0", Rules: rules, Behind: steeredBehind}); err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := s.steer.Close(); err != nil {
				t.Error(err)
			}
		})
		s.reader, err = kerneltest.PacketSocket(t, dev.Index, s.steer.Filter())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *steerTest) alive(t *testing.T, yes bool) {
	t.Helper()
	s.steer.heart.pretend(t, yes)
}

func (s *steerTest) stats(t *testing.T) SteerStats {
	t.Helper()
	st, err := s.steer.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// read returns the next frame that the reader gets.
func (s *steerTest) read(t *testing.T) []byte {
	t.Helper()
	b := make([]byte, 70000)
	n, err := unix.Read(s.reader, b)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return b[:n]
}

// What the reader gets is what the kernel does not get, and the other way round.
func TestSteer_readerAndProgramTakeTheSame(t *testing.T) {
	s := newSteerTest(t, steered)
	const seed = 6
	rng := rand.New(rand.NewPCG(seed, 0))
	marker := kerneltest.IPv4{ID: 0x7777, Protocol: 253, Src: netip.MustParseAddr(farAddr), Dst: steerTo(3)}.Bytes(nil)
	s.alive(t, true)
	send := func(name string, frame []byte, want bool) {
		t.Helper()
		before := s.stats(t)
		if _, err := unix.Write(s.out.FD, frame); err != nil {
			t.Fatal(err)
		}
		s.out.Send(t, marker)
		got := s.read(t)
		if want {
			if !slices.Equal(got, frame) {
				t.Fatalf("%s: the reader got\n%swant\n%s", name, dump(got), dump(frame))
			}
			before.Taken++
			got = s.read(t)
		}
		if !slices.Equal(got[14:], marker) {
			t.Fatalf("%s: the reader got\n%s", name, dump(got))
		}
		before.Taken++
		after := s.stats(t)
		if before.Seen = after.Seen; after != before { // more may arrive than the test sends
			t.Fatalf("%s: counters %+v, want %+v", name, after, before)
		}
	}
	ethernet := slices.Concat(s.out.Far, s.out.Own)
	for _, p := range steerFrames() {
		frame := slices.Concat(ethernet, p.bytes[12:])
		send(p.name, frame, steerOracle(steered, frame))
		// For another device, and for a VLAN on top of this one.
		frame[5] ^= 0x55
		send(p.name+", another's MAC address", frame, false)
		frame = slices.Concat(ethernet, []byte{0x81, 0, 0, 7}, p.bytes[12:])
		send(p.name+", VLAN 7", frame, false)
	}
	for range 500 {
		all := steerFrames()
		frame := noisyFrame(rng, all[rng.IntN(len(all))].bytes)
		copy(frame, ethernet)
		send("noise", frame, steerOracle(steered, frame))
	}
}

// The program, the socket's filter and the oracle agree on everything.
func TestSteer_programEqualsTheFilter(t *testing.T) {
	s := newSteerTest(t, steered)
	s.alive(t, true)
	vm := steerVM(t)
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	all := steerFrames()
	taken := make(map[byte]int) // by the first byte of the type

	for i := range 20000 {
		frame := noisyFrame(rng, slices.Clone(all[rng.IntN(len(all))].bytes))
		if len(frame) < 34 || frame[12] == 0x86 && len(frame) < 54 {
			continue // too short for the kernel's test runs
		}
		verdict, err := s.steer.at.Prog.Run(&ebpf.RunOptions{Data: frame})
		if err != nil {
			t.Fatal(err)
		}
		want := steerOracle(steered, frame)
		if want {
			taken[frame[12]]++
		}
		if got := verdict == actShot; got != want || filterTakes(t, vm, frame) != want {
			t.Fatalf("seed %d, packet %d: program %v, filter %v, oracle %v\n%x", seed, i, got, filterTakes(t, vm, frame), want, frame)
		}
	}
	if taken[0x08] < 1000 || taken[0x86] < 200 {
		t.Errorf("of 20000 taken, by types: %v", taken)
	}
}
