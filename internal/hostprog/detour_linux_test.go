package hostprog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
)

// detourTest is a host whose packets to its neighbour are routed into a TUN.
type detourTest struct {
	near, far string
	tun       netlink.Link
	reader    int // of the TUN
	detour    *Detour
	cfg       DetourConfig
}

// The IPv6 addresses of the two hosts.
const (
	detourNear6 = "fd00::2"
	detourFar6  = "fd00::99"
)

// newDetourTest makes one whose program knows the neighbour as the gateway, or not.
func newDetourTest(t *testing.T, named bool) *detourTest {
	t.Helper()
	d := &detourTest{near: kerneltest.Namespace(t, "near"), far: kerneltest.Namespace(t, "far"),
		cfg: DetourConfig{TUN: "t0", Uplink: "p0", Patience: time.Second}}
	if named {
		d.cfg.Gateway, d.cfg.Gateway6 = netip.MustParseAddr(farAddr), netip.MustParseAddr(detourFar6)
	}
	cable(t, d.near, d.far)
	kerneltest.Shell(t, d.near, "ip addr add "+detourNear6+"/64 dev p0 nodad")
	kerneltest.Shell(t, d.far, "ip addr add "+detourFar6+"/64 dev p1 nodad")
	d.do(t, func() (err error) {
		// With offloads, so that super-segments come to it whole.
		tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "t0"}, Mode: netlink.TUNTAP_MODE_TUN,
			Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR, Queues: 1, NonPersist: true}
		if err := netlink.LinkAdd(tun); err != nil {
			return err
		}
		d.reader = int(tun.Fds[0].Fd())
		t.Cleanup(func() { tun.Fds[0].Close() })
		const tunSetOffload, checksum, tso4, tso6 = 0x400454d0, 1, 2, 4
		if err := unix.IoctlSetInt(d.reader, tunSetOffload, checksum|tso4|tso6); err != nil {
			return err
		}
		if d.tun, err = netlink.LinkByName("t0"); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(d.tun); err != nil {
			return err
		}
		// A rule leads into the TUN, as a daemon has it: the main table still says
		// what the uplink's way is.
		for far, near := range map[string]string{farAddr: nearAddr, detourFar6: detourNear6} {
			a := netip.MustParseAddr(far)
			route := &netlink.Route{LinkIndex: d.tun.Attrs().Index, Dst: kernel.IPNet(netip.PrefixFrom(a, a.BitLen())), Table: 5740, Src: net.ParseIP(near)}
			rule := netlink.NewRule()
			rule.Priority, rule.Table, rule.Family, rule.IPProto = 5740, 5740, netlink.FAMILY_V6, unix.IPPROTO_TCP // else neighbour discovery goes there, too
			if a.Is4() {
				route.Scope, rule.Family, rule.IPProto = netlink.SCOPE_LINK, netlink.FAMILY_V4, 0
			}
			if err := errors.Join(netlink.RouteAdd(route), netlink.RuleAdd(rule)); err != nil {
				return fmt.Errorf("%s: %w", far, err)
			}
		}
		return nil
	})
	d.do(t, func() (err error) {
		d.detour, err = AttachDetour(d.cfg)
		return err
	})
	t.Cleanup(func() {
		if err := d.detour.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *detourTest) do(t *testing.T, f func() error) {
	t.Helper()
	if err := kernel.InNamespace(d.near, f); err != nil {
		t.Fatal(err)
	}
}

// alive has the TUN's reader look alive, or dead, until further notice.
func (d *detourTest) alive(t *testing.T, yes bool) {
	t.Helper()
	now, err := kernel.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	at := now + uint64(time.Hour)
	if !yes {
		at = now - uint64(d.cfg.Patience) - 1
	}
	if err := d.detour.heart.set(at, errDetourClosed); err != nil {
		t.Fatal(err)
	}
}

// queued reads what is in the TUN by now, and says how many packets that is, but for what
// IPv6 says of itself.
func (d *detourTest) queued() (n int) {
	b := make([]byte, 70000)
	unix.SetNonblock(d.reader, true)
	for {
		if _, err := unix.Read(d.reader, b); err != nil {
			return n
		}
		if ip := b[10:]; ip[0]>>4 == 4 || ip[6] == unix.IPPROTO_TCP { // behind struct virtio_net_hdr
			n++
		}
	}
}

// longest watches what leaves by the uplink from now on.
func (d *detourTest) longest(t *testing.T) func() int {
	t.Helper()
	var fd int
	d.do(t, func() error {
		up, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		fd, err = kerneltest.PacketSocket(t, up.Attrs().Index, nil)
		return err
	})
	return func() (most int) {
		b := make([]byte, 70000)
		for {
			n, _, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
			if err != nil {
				return most
			}
			most = max(most, n)
		}
	}
}

// transfer opens a connection to the neighbour's address far and sends so many bytes. hang,
// unless nil, is called after the first of them.
func (d *detourTest) transfer(t *testing.T, far string, n int, hang func()) {
	t.Helper()
	var l net.Listener
	err := kernel.InNamespace(d.far, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(far, "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n]
	arrived := make(chan error, 1)
	go func() { arrived <- receiveAll(l, sent) }()
	d.do(t, func() error {
		conn, err := net.DialTimeout("tcp", l.Addr().String(), kerneltest.Patience)
		if err != nil {
			return fmt.Errorf("dial: %w", err)
		}
		defer conn.Close()
		rest := sent
		if hang != nil {
			if _, err := conn.Write(sent[:1000]); err != nil {
				return err
			}
			rest = sent[1000:]
			hang()
		}
		if _, err := io.Copy(conn, bytes.NewReader(rest)); err != nil {
			return err
		}
		return <-arrived
	})
}

// Connections of the kernel's go on when nobody reads the TUN: by the routing table's
// next hop, and by one that is named.
func TestDetour_connectionsGoOn(t *testing.T) {
	slowtest.System(t)
	for _, far := range []string{farAddr, detourFar6} {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprint(far, named), func(t *testing.T) { connectionsGoOn(t, far, named) })
		}
	}
}

func connectionsGoOn(t *testing.T, far string, named bool) {
	d := newDetourTest(t, named)
	longest := d.longest(t)
	d.transfer(t, far, 1<<20, nil)
	if n := longest(); n < 10000 {
		t.Errorf("the longest packet has %d bytes: super-segments did not stay whole", n)
	}
	st, err := d.detour.Stats()
	if err != nil || st.Detoured < 1<<20/1460 || st.Stuck != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if n := d.queued(); n != 0 {
		t.Errorf("%d packets in the TUN, too", n)
	}
	// One that is under way when the reader stops: what it sent last is in the
	// TUN, and comes again.
	d.transfer(t, far, 1<<20, func() {
		d.alive(t, true)
		go func() {
			time.Sleep(50 * time.Millisecond)
			d.alive(t, false)
		}()
	})
	if n := d.queued(); n == 0 {
		t.Error("nothing went into the TUN while its reader was alive")
	}
}

// While the reader beats, everything goes into the TUN, and so does what is not IP ever after.
func TestDetour_leavesAlone(t *testing.T) {
	d := newDetourTest(t, false)
	d.alive(t, true)
	d.queued()
	before, err := d.detour.Stats() // before that the kernel may have sent something of its own
	if err != nil {
		t.Fatal(err)
	}
	d.do(t, func() error {
		conn, err := net.Dial("udp4", farAddr+":9")
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte("x"))
		return err
	})
	kerneltest.Within(t, kerneltest.Patience, "a packet in the TUN", func() bool { return d.queued() == 1 })
	if st, err := d.detour.Stats(); err != nil || st != before {
		t.Errorf("%+v, %v; before it %+v", st, err, before)
	}
	// A silent reader gets the rest still.
	d.alive(t, false)
	frame := make([]byte, 60)
	frame[12], frame[13] = 0x88, 0xcc
	verdict, err := d.detour.at.Prog.Run(&ebpf.RunOptions{Data: frame})
	if err != nil || verdict != actUnspec {
		t.Errorf("LLDP: verdict %d, %v", verdict, err)
	}
	kerneltest.Within(t, kerneltest.Patience, "a Beat", func() bool {
		if err := d.detour.Beat(); err != nil {
			t.Fatal(err)
		}
		for _, start := range [][]byte{{8, 0, 0x45}, {0x86, 0xdd, 0x60}} {
			copy(frame[12:], start)
			if verdict, err := d.detour.at.Prog.Run(&ebpf.RunOptions{Data: frame}); err != nil || verdict != actUnspec {
				return false
			}
		}
		return true
	})
}

func TestDetour_repair(t *testing.T) {
	d := newDetourTest(t, false)
	repair := func(want int) {
		t.Helper()
		mended, err := d.detour.Repair()
		if err != nil || len(mended) != want {
			t.Fatalf("mended %q, %v; want %d", mended, err, want)
		}
	}
	repair(0)
	d.do(t, func() error {
		chain, err := kerneltest.TCX(d.tun, ebpf.AttachTCXEgress)
		if errors.Is(err, kerneltest.ErrNoTCX) {
			return netlink.QdiscDel(kerneltest.Clsact(d.tun))
		}
		if err != nil || !slices.Contains(chain, d.detour.at.ID) {
			return fmt.Errorf("chain %v, %w", chain, err)
		}
		return link.RawDetachProgram(link.RawDetachProgramOptions{Target: d.tun.Attrs().Index, Program: d.detour.at.Prog, Attach: ebpf.AttachTCXEgress})
	})
	repair(1)
	repair(0)
	d.transfer(t, farAddr, 1000, nil)
	d.do(t, func() error {
		up, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(up)
	})
	if _, err := d.detour.Repair(); !errors.Is(err, ErrUplinkGone) {
		t.Errorf("%v, want ErrUplinkGone", err)
	}
}

func TestAttachDetour_errorsSayWhatToDo(t *testing.T) {
	ns := kerneltest.Namespace(t, "errors")
	kerneltest.EthernetPair(t, ns, "p0", "p1")
	for _, c := range []struct {
		cfg  DetourConfig
		want string
	}{
		{DetourConfig{TUN: "t0", Uplink: "p0"}, "Patience is 0s, must be from 1ms to 1h0m0s"},
		{DetourConfig{TUN: "t0", Uplink: "p0", Patience: time.Second, Gateway: netip.IPv6Loopback()}, "Gateway: ::1 is not IPv4"},
		{DetourConfig{TUN: "t0", Uplink: "p0", Patience: time.Second, Gateway6: netip.MustParseAddr("10.0.0.1")}, "Gateway6: 10.0.0.1 is not IPv6"},
		{DetourConfig{TUN: "t0", Uplink: "p0", Patience: time.Second}, "port t0: no such device"},
		{DetourConfig{TUN: "p1", Uplink: "p0", Patience: time.Second}, "a device without Ethernet headers is needed"},
		{DetourConfig{TUN: "p1", Uplink: "lo", Patience: time.Second}, "an Ethernet device is needed"},
	} {
		err := kernel.InNamespace(ns, func() error {
			_, err := AttachDetour(c.cfg)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "detour: ") {
			t.Errorf("%v; does not say %q", err, c.want)
		}
	}
}
