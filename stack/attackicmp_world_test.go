package stack_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"weft/encap"
	"weft/internal/simnet"
	"weft/internal/simnet/world"
	"weft/stack"
)

// icmpWorld is a fabric in which one host's packets are looked at as they leave.
type icmpWorld struct {
	*world.World
	last    []byte // data of TCP that has left last, without the outer header
	longest int    // of all TCP since it was set to 0
	mtu     int    // of the way, outer header included; 0: as all others
	tooLong int    // packets that were, and of which the switch has told
}

// tap is a device on whose way there is a switch with a narrower link.
type tap struct {
	stack.Device
	w *icmpWorld
}

func (d tap) Write(bufs [][]byte, offset int) (int, error) {
	for i := range bufs {
		if d.w.passes(bufs[i][offset:]) {
			if _, err := d.Device.Write(bufs[i:i+1], offset); err != nil {
				return i, err
			}
		}
	}
	return len(bufs), nil
}

const tapped, tappedPeer = "h0.0.2", "h3.0.2"

func newICMPWorld(t *testing.T, policy string, seed uint64, rate int64, queue int) *icmpWorld {
	t.Helper()
	w := &icmpWorld{}
	w.World = world.New(world.Config{
		Topology: "fat-tree:k=4", Seed: seed, Links: simnet.Config{RateBits: rate, Delay: 5 * time.Microsecond, HostQueueBytes: queue},
		Hosts: func(name string, c *stack.Config) {
			c.Policy = policy
			if name == tapped {
				c.Device = tap{c.Device, w}
			}
		},
	})
	t.Cleanup(w.Close)
	return w
}

// passes looks at a packet, and has the switch complain of those that do not fit.
func (w *icmpWorld) passes(packet []byte) bool {
	inner := packet
	if packet[9] == 4 {
		inner = packet[20:]
	}
	if inner[9] != 6 || len(inner) < 60 {
		return true
	}
	w.last = append(w.last[:0], inner...)
	w.longest = max(w.longest, len(inner))
	if w.mtu == 0 || len(packet) <= w.mtu {
		return true
	}
	w.tooLong++
	b := icmpError(3, 4, uint16(w.mtu), packet)
	w.At(w.Now()+20*time.Microsecond, func() { w.Host(tapped).Receive(b) })
	return false
}

// icmpError is one of a switch about a packet, of which it quotes 128 bytes.
func icmpError(kind, code byte, mtu uint16, about []byte) []byte {
	b := append(make([]byte, 28), about[:min(len(about), 128)]...)
	b[0], b[8], b[9] = 0x45, 63, 1
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	copy(b[12:], []byte{10, 0, 2, 1})
	copy(b[16:20], about[12:16])
	b[20], b[21] = kind, code
	binary.BigEndian.PutUint16(b[26:], mtu)
	binary.BigEndian.PutUint16(b[22:], ^checksum.Checksum(b[20:], 0))
	ip := header.IPv4(b)
	ip.SetChecksum(^ip.CalculateChecksum())
	return b
}

// encapsulated is a packet as it goes to the first core.
func encapsulated(t *testing.T, inner []byte) []byte {
	t.Helper()
	o, err := encap.NewIPIP(netip.AddrFrom4([4]byte(inner[12:16])), netip.MustParseAddr("10.4.1.1"))
	if err != nil {
		t.Fatal(err)
	}
	b := append(make([]byte, encap.Overhead), inner...)
	if err := o.Encapsulate(b, 1); err != nil {
		t.Fatal(err)
	}
	return b
}

// Whoever does not see a connection's packets cannot make them smaller, by an error
// about the packet itself or about an outer header.
func TestHost_blindErrorsShrinkNothing(t *testing.T) {
	inShort(t)
	for _, policy := range []string{"drb", "presto", "conga"} {
		w := newICMPWorld(t, policy, 1, 100e6, 75_000)
		f := w.Flow(tapped, tappedPeer, world.Endless)
		until(t, w.World, 50*time.Millisecond)
		whole := w.longest
		for _, offset := range []uint32{1 << 31, 1 << 28, 1 << 24, ^uint32(1<<24) + 1} {
			guess := append([]byte(nil), w.last...)
			binary.BigEndian.PutUint32(guess[24:], binary.BigEndian.Uint32(guess[24:])+offset)
			w.Host(tapped).Receive(icmpError(3, 4, 552, guess))
			w.Host(tapped).Receive(icmpError(3, 4, 572, encapsulated(t, guess)))
			w.Host(tapped).Receive(icmpError(4, 0, 0, guess)) // source quench
		}
		until(t, w.World, 60*time.Millisecond)
		w.longest = 0
		before := f.Received
		until(t, w.World, 160*time.Millisecond)
		t.Logf("%s: packets of %d bytes, %d of data, before; then %d, %d of data", policy, whole, whole-40, w.longest, w.longest-40)
		if w.longest != whole {
			t.Errorf("%s: a blind error has made packets of %d bytes of those of %d", policy, w.longest, whole)
		}
		if rate := float64(f.Received-before) * 8 / 0.1; rate < 60e6 {
			t.Errorf("%s: %.0f bit/s after blind errors", policy, rate)
		}
		if s := w.Host(tapped).Stats(); s.Ingress.BlindErrors != 12 || s.Egress.Narrowed != 0 {
			t.Errorf("%s: %+v", policy, s.Ingress)
		}
	}
}

// A switch that really has a narrower link behind it is believed, whatever it is
// about, and only so far as it says; and when the way is wide again, that is found.
func TestHost_followsThePathMTUAndComesBack(t *testing.T) {
	inShort(t)
	for _, policy := range []string{"drb", "presto"} {
		for seed := uint64(1); seed <= 2; seed++ {
			w := newICMPWorld(t, policy, seed, 5e6, 18_750)
			f := w.Flow(tapped, tappedPeer, world.Endless)
			until(t, w.World, 200*time.Millisecond)
			whole := w.longest
			for _, mtu := range []int{1400, 1200} {
				w.mtu, w.tooLong = mtu, 0
				until(t, w.World, w.Now()+200*time.Millisecond)
				w.longest = 0
				before := f.Received
				until(t, w.World, w.Now()+400*time.Millisecond)
				if w.longest != mtu-encap.Overhead {
					t.Errorf("%s, seed %d: MTU %d, and packets of %d bytes", policy, seed, mtu, w.longest)
				}
				if rate := float64(f.Received-before) * 8 / 0.4; rate < 1.5e6 { // the whole flight was lost
					t.Errorf("%s, seed %d: %.0f bit/s with an MTU of %d", policy, seed, rate, mtu)
				}
				if w.tooLong == 0 || w.tooLong > 40 { // what was on its way
					t.Errorf("%s, seed %d: %d packets were too long for %d", policy, seed, w.tooLong, mtu)
				}
			}
			// As long as it is narrow, tries are few.
			w.tooLong = 0
			until(t, w.World, w.Now()+12*time.Second)
			if w.tooLong == 0 || w.tooLong > 3 {
				t.Errorf("%s, seed %d: %d tries within 12 s", policy, seed, w.tooLong)
			}
			w.mtu = 0
			took := within(t, w.World, 30*time.Second, "packets are whole again", func() bool {
				w.longest = 0
				until(t, w.World, w.Now()+time.Second)
				return w.longest == whole
			})
			until(t, w.World, w.Now()+5*time.Second)
			w.longest = 0
			narrowed := w.Host(tapped).Stats().Egress.Narrowed
			until(t, w.World, w.Now()+100*time.Millisecond)
			if n := w.Host(tapped).Stats().Egress.Narrowed; n != narrowed || w.longest != whole {
				t.Errorf("%s, seed %d: %d packets cut while the way is wide, the longest %d", policy, seed, n-narrowed, w.longest)
			}
			t.Logf("%s, seed %d: whole again %v after the way", policy, seed, took)
		}
	}
}
