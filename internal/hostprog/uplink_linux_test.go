package hostprog

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// uplinkTest is a host's uplink to a neighbour who shows what leaves.
type uplinkTest struct {
	near, far string // namespaces
	port      netlink.Link
	out, in   *kerneltest.Wire // packets leave at the near end, and are seen at the far one
	cfg       SprayConfig
	spray     *Spray
	seq       uint32 // of the next segment
}

func newUplinkTest(t *testing.T) *uplinkTest {
	t.Helper()
	top := kerneltest.Topology(t, "fat-tree:k=4")
	u := &uplinkTest{near: kerneltest.Namespace(t, "near"), far: kerneltest.Namespace(t, "far"), out: &kerneltest.Wire{}, in: &kerneltest.Wire{},
		cfg: SprayConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top, Policy: mustPolicy(t, "drb")}}
	cable(t, u.near, u.far)
	open := func(ns, name string, w *kerneltest.Wire) {
		err := kernel.InNamespace(ns, func() (err error) {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if ns == u.near {
				u.port = l
			}
			w.Own = l.Attrs().HardwareAddr
			w.FD, err = kerneltest.PacketSocket(t, l.Attrs().Index, nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	open(u.near, "p0", u.out)
	open(u.far, "p1", u.in)
	u.out.Far, u.in.Far = u.in.Own, u.out.Own
	return u
}

// do runs f in the namespace of the uplink.
func (u *uplinkTest) do(t *testing.T, f func() error) {
	t.Helper()
	if err := kernel.InNamespace(u.near, f); err != nil {
		t.Fatal(err)
	}
}

func (u *uplinkTest) attach(t *testing.T) {
	t.Helper()
	u.do(t, func() (err error) {
		u.spray, err = AttachSpray(u.cfg)
		return err
	})
	o := u.spray
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
}

// sprays sends a packet to another rack, and reports whether it was encapsulated.
func (u *uplinkTest) sprays(t *testing.T) bool {
	t.Helper()
	return u.protocol(t, topLast(u.cfg)) == 4
}

// topLast is a host of another rack.
func topLast(c SprayConfig) netip.Addr {
	hosts := kerneltest.Hosts(c.Topology)
	return hosts[len(hosts)-1].Addr
}

// protocol sends the flow's next segment to an address, and returns the protocol of the
// packet that came out. The same segment once more would be a timeout's resend on a busy
// machine, which ends a flowcell.
func (u *uplinkTest) protocol(t *testing.T, to netip.Addr) byte {
	t.Helper()
	const payload = "payload"
	tcp := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 1, 0, 0, 0, 0, 0}, payload...)
	binary.BigEndian.PutUint32(tcp[4:], u.seq)
	u.seq += uint32(len(payload))
	u.out.Send(t, kerneltest.IPv4{ID: 1, Frag: 0x4000, TTL: 9, Protocol: 6, Src: u.cfg.Addresses[0], Dst: to}.Bytes(tcp))
	b := make([]byte, 2000)
	for {
		n, from, err := unix.Recvfrom(u.in.FD, b, 0)
		if err != nil {
			t.Fatalf("nothing came out: %v", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING && n > 34 && b[12] == 8 && b[13] == 0 && (b[14+9] == 4 || b[14+9] == 6) {
			return b[14+9]
		}
	}
}

// repair wants so many sentences, the first with these words.
func (u *uplinkTest) repair(t *testing.T, words ...string) {
	t.Helper()
	mended, err := u.spray.Repair()
	if err != nil {
		t.Fatal(err)
	}
	if len(mended) != min(1, len(words)) {
		t.Fatalf("mended %q, want %d", mended, min(1, len(words)))
	}
	for _, w := range words {
		if !strings.Contains(mended[0], w) {
			t.Errorf("%q does not say %q", mended[0], w)
		}
	}
}
