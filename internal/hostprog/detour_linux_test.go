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
)

// detourTest is a host whose packets to its neighbour are routed into a TUN.
type detourTest struct {
	near, far string
	tun       netlink.Link
	reader    int // of the TUN
	detour    *Detour
	cfg       DetourConfig
}

func newDetourTest(t *testing.T, gateway netip.Addr) *detourTest {
	t.Helper()
	d := &detourTest{near: kerneltest.Namespace(t, "near"), far: kerneltest.Namespace(t, "far"),
		cfg: DetourConfig{TUN: "t0", Uplink: "p0", Gateway: gateway, Patience: time.Second}}
	cable(t, d.near, d.far)
	d.do(t, func() (err error) {
		// With offloads, so that super-segments come to it whole.
		tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "t0"}, Mode: netlink.TUNTAP_MODE_TUN,
			Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR, Queues: 1, NonPersist: true}
		if err := netlink.LinkAdd(tun); err != nil {
			return err
		}
		d.reader = int(tun.Fds[0].Fd())
		t.Cleanup(func() { tun.Fds[0].Close() })
		const tunSetOffload, checksum, tso4 = 0x400454d0, 1, 2
		if err := unix.IoctlSetInt(d.reader, tunSetOffload, checksum|tso4); err != nil {
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
		far := netip.PrefixFrom(netip.MustParseAddr(farAddr), 32)
		rule := netlink.NewRule()
		rule.Priority, rule.Table = 5740, 5740
		return errors.Join(
			netlink.RouteAdd(&netlink.Route{LinkIndex: d.tun.Attrs().Index, Dst: kernel.IPNet(far), Table: 5740,
				Scope: netlink.SCOPE_LINK, Src: net.ParseIP(nearAddr)}),
			netlink.RuleAdd(rule))
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

// queued reads what is in the TUN by now, and says how many packets of IPv4 that is.
func (d *detourTest) queued() (n int) {
	b := make([]byte, 70000)
	unix.SetNonblock(d.reader, true)
	for {
		if _, err := unix.Read(d.reader, b); err != nil {
			return n
		}
		if b[10]>>4 == 4 { // behind struct virtio_net_hdr
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

// transfer opens a connection to the neighbour and sends so many bytes. hang, unless
// nil, is called after the first of them.
func (d *detourTest) transfer(t *testing.T, n int, hang func()) {
	t.Helper()
	var l net.Listener
	err := kernel.InNamespace(d.far, func() (err error) {
		l, err = net.Listen("tcp4", farAddr+":0")
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
		conn, err := net.DialTimeout("tcp4", l.Addr().String(), kerneltest.Patience)
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
	for _, gateway := range []netip.Addr{{}, netip.MustParseAddr(farAddr)} {
		t.Run(fmt.Sprint(gateway), func(t *testing.T) {
			d := newDetourTest(t, gateway)
			longest := d.longest(t)
			d.transfer(t, 1<<20, nil)
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
			d.transfer(t, 1<<20, func() {
				d.alive(t, true)
				go func() {
					time.Sleep(50 * time.Millisecond)
					d.alive(t, false)
				}()
			})
			if n := d.queued(); n == 0 {
				t.Error("nothing went into the TUN while its reader was alive")
			}
		})
	}
}

// While the reader beats, everything goes into the TUN, and so does IPv6 ever after.
func TestDetour_leavesAlone(t *testing.T) {
	d := newDetourTest(t, netip.Addr{})
	d.alive(t, true)
	d.queued()
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
	if st, err := d.detour.Stats(); err != nil || st != (DetourStats{}) {
		t.Errorf("%+v, %v", st, err)
	}
	// A silent reader gets IPv6 still.
	d.alive(t, false)
	frame := make([]byte, 60)
	frame[12], frame[13], frame[14] = 0x86, 0xdd, 0x60
	verdict, err := d.detour.at.Prog.Run(&ebpf.RunOptions{Data: frame})
	if err != nil || verdict != actUnspec {
		t.Errorf("IPv6: verdict %d, %v", verdict, err)
	}
	kerneltest.Within(t, kerneltest.Patience, "a Beat", func() bool {
		if err := d.detour.Beat(); err != nil {
			t.Fatal(err)
		}
		frame[12], frame[13], frame[14] = 8, 0, 0x45
		verdict, err := d.detour.at.Prog.Run(&ebpf.RunOptions{Data: frame})
		return err == nil && verdict == actUnspec
	})
}

func TestDetour_repair(t *testing.T) {
	d := newDetourTest(t, netip.Addr{})
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
	d.transfer(t, 1000, nil)
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
