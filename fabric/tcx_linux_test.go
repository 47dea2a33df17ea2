package fabric

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// foreignProgram loads a tc program as others have it, which returns one verdict.
func foreignProgram(t *testing.T, name string, verdict int32) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Verdicts that end a chain of programs, and that do not.
const (
	tcxEnd  = 0  // TC_ACT_OK
	tcxNext = -1 // TCX_NEXT
)

// needTCX skips a test on kernels without.
func needTCX(t *testing.T, u *uplinkTest) {
	t.Helper()
	if _, err := inChain(u); errors.Is(err, errNoTCX) {
		t.Skip(err)
	}
}

// withoutTCX makes the process use clsact until the end of the test.
func withoutTCX(t *testing.T) {
	onlyClsact.Store(true)
	t.Cleanup(func() { onlyClsact.Store(false) })
}

// attachForeign attaches by TCX until the end of the test.
func attachForeign(t *testing.T, port netlink.Link, at ebpf.AttachType, prog *ebpf.Program, anchor link.Anchor) {
	t.Helper()
	o := link.RawAttachProgramOptions{Target: port.Attrs().Index, Program: prog, Attach: at, Anchor: anchor}
	if err := link.RawAttachProgram(o); err != nil {
		t.Error(err)
	}
}

func detachForeign(port netlink.Link, at ebpf.AttachType, prog *ebpf.Program) error {
	return link.RawDetachProgram(link.RawDetachProgramOptions{Target: port.Attrs().Index, Program: prog, Attach: at})
}

// uplinkTest is a host's uplink to a neighbour who shows what leaves.
type uplinkTest struct {
	near, far string // namespaces
	port      netlink.Link
	out, in   *wire // packets leave at the near end, and are seen at the far one
	cfg       OffloadConfig
	offload   *Offload
}

func newUplinkTest(t *testing.T) *uplinkTest {
	t.Helper()
	top := mustParse(t, "fat-tree:k=4")
	u := &uplinkTest{near: testNamespace(t, "near"), far: testNamespace(t, "far"), out: &wire{}, in: &wire{},
		cfg: OffloadConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top, Policy: mustPolicy(t, "drb")}}
	cable(t, u.near, u.far)
	open := func(ns, name string, w *wire) {
		err := inNamed(ns, func() (err error) {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if ns == u.near {
				u.port = l
			}
			w.own = l.Attrs().HardwareAddr
			w.fd, err = packetSocket(t, l.Attrs().Index, nil)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	open(u.near, "p0", u.out)
	open(u.far, "p1", u.in)
	u.out.far, u.in.far = u.in.own, u.out.own
	return u
}

// do runs f in the namespace of the uplink.
func (u *uplinkTest) do(t *testing.T, f func() error) {
	t.Helper()
	if err := inNamed(u.near, f); err != nil {
		t.Fatal(err)
	}
}

func (u *uplinkTest) attach(t *testing.T) {
	t.Helper()
	u.do(t, func() (err error) {
		u.offload, err = AttachOffload(u.cfg)
		return err
	})
	o := u.offload
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
func topLast(c OffloadConfig) netip.Addr {
	hosts := hostsOf(c.Topology)
	return hosts[len(hosts)-1].Addr
}

// protocol sends a segment to an address, and returns the protocol of the packet that
// came out.
func (u *uplinkTest) protocol(t *testing.T, to netip.Addr) byte {
	t.Helper()
	tcp := append([]byte{0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x10, 1, 0, 0, 0, 0, 0}, "payload"...)
	u.out.send(t, ipv4{id: 1, frag: 0x4000, ttl: 9, protocol: 6, src: u.cfg.Addresses[0], dst: to}.bytes(tcp))
	b := make([]byte, 2000)
	for {
		n, from, err := unix.Recvfrom(u.in.fd, b, 0)
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
	mended, err := u.offload.Repair()
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

// A program of others that ends the chain, wherever it is and whenever it came, does
// not keep packets from being sprayed, or is named.
func TestOffload_besideOtherPrograms(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	end := foreignProgram(t, "cil_to_netdev", tcxEnd)
	hook := ebpf.AttachTCXEgress
	foreign := func(front bool) {
		t.Helper()
		all, err := u.offload.Foreign()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0].Name != "cil_to_netdev" || all[0].By != "TCX" || all[0].Hook != "egress" || all[0].Front != front || all[0].ID == 0 {
			t.Errorf("foreign: %+v, want cil_to_netdev, in front: %t", all, front)
		}
	}
	for _, c := range []struct {
		name   string
		anchor link.Anchor
		before bool // weft
		hidden bool
	}{
		{"before weft", link.Head(), true, false},
		{"in front, later", link.Head(), false, true},
		{"behind, later", link.Tail(), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before {
				u.do(t, func() error { attachForeign(t, u.port, hook, end, c.anchor); return nil })
				u.attach(t)
			} else {
				u.attach(t)
				u.do(t, func() error { attachForeign(t, u.port, hook, end, c.anchor); return nil })
			}
			defer u.do(t, func() error { return detachForeign(u.port, hook, end) })
			seen, err := u.offload.Seen()
			if err != nil {
				t.Fatal(err)
			}
			if got := u.sprays(t); got == c.hidden {
				t.Errorf("sprayed %t before Repair", got)
			}
			more, err := u.offload.Seen()
			if err != nil || (more > seen) == c.hidden {
				t.Errorf("%d packets seen, then %d, %v; hidden: %t", seen, more, err, c.hidden)
			}
			foreign(c.hidden)
			if c.hidden {
				u.repair(t, "moved weft-spray to the front", "egress of p0", "cil_to_netdev")
			}
			u.repair(t)
			if !u.sprays(t) {
				t.Error("not sprayed after Repair")
			}
			foreign(false)
			if err := u.offload.Close(); err != nil {
				t.Fatal(err)
			}
			if u.sprays(t) {
				t.Error("sprayed after Close")
			}
		})
	}
}

// What was deleted is put back.
func TestOffload_repairsWhatIsGone(t *testing.T) {
	t.Run("TCX", func(t *testing.T) {
		u := newUplinkTest(t)
		needTCX(t, u)
		u.attach(t)
		u.do(t, func() error { return detachForeign(u.port, ebpf.AttachTCXEgress, u.offload.at.prog) })
		if u.sprays(t) {
			t.Fatal("sprayed without a program")
		}
		u.repair(t, "attached weft-spray at egress of p0 again")
		u.repair(t)
		if !u.sprays(t) {
			t.Error("not sprayed after Repair")
		}
	})
	for _, what := range []string{"filter", "qdisc"} {
		t.Run("clsact "+what, func(t *testing.T) {
			withoutTCX(t)
			u := newUplinkTest(t)
			u.attach(t)
			if !u.sprays(t) {
				t.Fatal("not sprayed by clsact")
			}
			u.do(t, func() error {
				if what == "qdisc" {
					return netlink.QdiscDel(clsactOf(u.port))
				}
				return netlink.FilterDel(sprayFilter.on(u.port.Attrs().Index))
			})
			if u.sprays(t) {
				t.Fatal("sprayed without a program")
			}
			u.repair(t, "attached weft-spray at egress of p0 again")
			u.repair(t)
			if !u.sprays(t) {
				t.Error("not sprayed after Repair")
			}
		})
	}
}

// On a kernel without TCX nothing can come before clsact; a filter that does, and a
// TCX program where there is TCX after all, are named.
func TestOffload_clsactNamesWhatIsInFront(t *testing.T) {
	withoutTCX(t)
	u := newUplinkTest(t)
	u.attach(t)
	end := foreignProgram(t, "ends_it", tcxEnd)
	for _, c := range []struct {
		priority uint16
		front    bool
	}{{1, true}, {0xc000, false}} {
		u.do(t, func() error {
			return netlink.FilterAdd(&netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: u.port.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS,
				Handle: 1, Protocol: unix.ETH_P_ALL, Priority: c.priority}, Fd: end.FD(), Name: "others", DirectAction: true})
		})
		if got := u.sprays(t); got == c.front {
			t.Errorf("priority %d: sprayed %t", c.priority, got)
		}
		all, err := u.offload.Foreign()
		if err != nil || len(all) != 1 || all[0].Name != "others" || all[0].By != "clsact" || all[0].Kind != "bpf" || all[0].Front != c.front {
			t.Errorf("priority %d: foreign %+v, %v", c.priority, all, err)
		}
		u.repair(t)
		u.do(t, func() error {
			return netlink.FilterDel(&netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: u.port.Attrs().Index, Parent: netlink.HANDLE_MIN_EGRESS,
				Handle: 1, Protocol: unix.ETH_P_ALL, Priority: c.priority}})
		})
	}
}

// Two who both want to be first do not move each other for ever.
func TestOffload_givesInToWhoInsists(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	u.attach(t)
	end := foreignProgram(t, "insists", tcxEnd)
	defer inNamed(u.near, func() error { return detachForeign(u.port, ebpf.AttachTCXEgress, end) })
	for i := range maxMoves + 3 {
		u.do(t, func() error {
			detachForeign(u.port, ebpf.AttachTCXEgress, end)
			attachForeign(t, u.port, ebpf.AttachTCXEgress, end, link.Head())
			return nil
		})
		mended, err := u.offload.Repair()
		if i < maxMoves {
			if err != nil || len(mended) != 1 {
				t.Fatalf("time %d: %q, %v", i, mended, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "insists") || mended != nil {
			t.Fatalf("time %d: %q, %v; want an error that names who insists", i, mended, err)
		}
	}
	now := time.Now().Add(moveWindow)
	if !u.offload.at.mayMove(now) {
		t.Error("not again after a minute")
	}
}

// A device that was renamed is the same; one that is gone is reported as such, and
// Close has nothing to complain of.
func TestOffload_uplinkRenamedAndGone(t *testing.T) {
	inBothChains(t, func(t *testing.T, u *uplinkTest) {
		u.cfg.PerPacketTCP = true
		u.attach(t)
		var steer *Steer
		u.do(t, func() (err error) {
			if steer, err = AttachSteer(SteerConfig{Uplink: "p0", Rules: steered}); err != nil {
				return err
			}
			return errors.Join(netlink.LinkSetDown(u.port), netlink.LinkSetName(u.port, "other0"), netlink.LinkSetUp(u.port))
		})
		u.repair(t)
		for _, w := range []*wire{u.out, u.in} { // that the device was down
			unix.GetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		}
		if !u.sprays(t) {
			t.Error("not sprayed by the renamed device")
		}
		u.do(t, func() error { return netlink.LinkSetGSOMaxSegs(u.port, 100) })
		u.repair(t, "set gso_max_segs of other0 to 1 again, which was 100")

		u.do(t, func() error { return netlink.LinkDel(u.port) })
		if mended, err := u.offload.Repair(); !errors.Is(err, ErrUplinkGone) || mended != nil {
			t.Errorf("%q, %v; want ErrUplinkGone", mended, err)
		}
		if mended, err := steer.Repair(); !errors.Is(err, ErrUplinkGone) || mended != nil {
			t.Errorf("%q, %v; want ErrUplinkGone", mended, err)
		}
		if err := errors.Join(u.offload.Close(), steer.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// inBothChains runs a test by TCX, where there is that, and by clsact.
func inBothChains(t *testing.T, f func(t *testing.T, u *uplinkTest)) {
	t.Run("TCX", func(t *testing.T) {
		u := newUplinkTest(t)
		needTCX(t, u)
		f(t, u)
	})
	t.Run("clsact", func(t *testing.T) {
		withoutTCX(t)
		f(t, newUplinkTest(t))
	})
}

// One that was replaced does not fight its successor.
func TestOffload_repairOfOneReplaced(t *testing.T) {
	inBothChains(t, func(t *testing.T, u *uplinkTest) {
		u.attach(t)
		first := u.offload
		u.attach(t)
		if mended, err := first.Repair(); !errors.Is(err, ErrReplaced) || mended != nil {
			t.Errorf("%q, %v; want ErrReplaced", mended, err)
		}
		u.repair(t)
	})
}

// weft of before attached to clsact; what it left is replaced, and its qdisc, which
// may be anybody's, stays.
func TestOffload_replacesClsactByTCX(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	u.do(t, func() error { return netlink.QdiscAdd(clsactOf(u.port)) })
	onlyClsact.Store(true)
	defer onlyClsact.Store(false)
	u.cfg.PerPacketTCP = true
	u.attach(t)
	old := u.offload
	old.release()
	onlyClsact.Store(false)
	u.attach(t)
	u.do(t, func() error {
		if f, err := sprayFilter.inClsact(u.offload.handle, u.port); f != nil || err != nil {
			t.Errorf("clsact still has %v, %v", f, err)
		}
		if c, err := sprayFilter.chain(u.port); err != nil || !c.has(u.offload.at.id) {
			t.Errorf("chain %+v, %v", c, err)
		}
		return nil
	})
	if !u.sprays(t) {
		t.Error("not sprayed")
	}
	if err := u.offload.Close(); err != nil {
		t.Fatal(err)
	}
	if n := u.gsoMaxSegs(t); n != u.port.Attrs().GSOMaxSegs {
		t.Errorf("gso_max_segs is %d, was %d before both", n, u.port.Attrs().GSOMaxSegs)
	}
	if !u.hasClsact(t) {
		t.Error("the qdisc that was somebody else's is gone")
	}
}

func (u *uplinkTest) gsoMaxSegs(t *testing.T) (n uint32) {
	t.Helper()
	u.do(t, func() error {
		l, err := netlink.LinkByName("p0")
		if err == nil {
			n = l.Attrs().GSOMaxSegs
		}
		return err
	})
	return n
}

func (u *uplinkTest) hasClsact(t *testing.T) (has bool) {
	t.Helper()
	u.do(t, func() error {
		all, err := netlink.QdiscList(u.port)
		has = slices.ContainsFunc(all, func(q netlink.Qdisc) bool { return q.Type() == "clsact" })
		return err
	})
	return has
}

// The qdisc goes with the last of weft's programs, whoever is last, if weft made it and
// nobody else uses it. With TCX there is none.
func TestClsact_goesWithWeft(t *testing.T) {
	u := newUplinkTest(t)
	pair := func() (*Offload, *Steer) {
		var steer *Steer
		u.attach(t)
		u.do(t, func() (err error) {
			steer, err = AttachSteer(SteerConfig{Uplink: "p0", Rules: steered})
			return err
		})
		return u.offload, steer
	}
	if _, err := inChain(u); err == nil {
		o, s := pair()
		if u.hasClsact(t) {
			t.Error("a qdisc was made that TCX does not need")
		}
		if err := errors.Join(o.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	withoutTCX(t)
	for range 2 { // the record goes from one to the other
		o, s := pair()
		if err := o.Close(); err != nil || !u.hasClsact(t) {
			t.Fatalf("the qdisc went before Steer: %v", err)
		}
		if err := s.Close(); err != nil || u.hasClsact(t) {
			t.Fatalf("the qdisc has stayed: %v", err)
		}
		o, s = pair()
		if err := s.Close(); err != nil || !u.hasClsact(t) {
			t.Fatalf("the qdisc went before Offload: %v", err)
		}
		if err := o.Close(); err != nil || u.hasClsact(t) {
			t.Fatalf("the qdisc has stayed: %v", err)
		}
	}
	// After a crash, too.
	o, s := pair()
	o.release()
	s.release()
	ownPrograms.forgetAll()
	u.do(t, func() error {
		_, err1 := DetachOffload("p0")
		_, err2 := DetachSteer("p0")
		return errors.Join(err1, err2)
	})
	if u.hasClsact(t) {
		t.Error("the qdisc has stayed after a crash")
	}
	// Not where others have a filter, or have made it.
	o, s = pair()
	pass := foreignProgram(t, "others", tcxNext)
	others := &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: u.port.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS,
		Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 7}, Fd: pass.FD(), Name: "others", DirectAction: true}
	u.do(t, func() error { return netlink.FilterAdd(others) })
	if err := errors.Join(o.Close(), s.Close()); err != nil || !u.hasClsact(t) {
		t.Errorf("a qdisc with others' filter is gone: %v", err)
	}
	u.do(t, func() error { return netlink.FilterDel(others) })
	o, s = pair()
	if err := errors.Join(o.Close(), s.Close()); err != nil || !u.hasClsact(t) {
		t.Errorf("another's qdisc is gone: %v", err)
	}
}

func inChain(u *uplinkTest) (c tcxChain, err error) {
	err = inNamed(u.near, func() error {
		c, err = sprayFilter.chain(u.port)
		return err
	})
	return c, err
}

// forgetAll makes this process know as little of what it has attached as another one.
func (t *programTable) forgetAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.all)
}

// Weft's own keep their order, in whichever they come.
func TestTCX_ownOrder(t *testing.T) {
	u := newUplinkTest(t)
	needTCX(t, u)
	places := []tcFilter{silentFilter, steerFilter, decapFilter, edgeFilter}
	programs := make(map[string]*ebpf.Program)
	for _, p := range places {
		programs[p.name] = foreignProgram(t, p.programName(), tcxNext)
	}
	others := foreignProgram(t, "others", tcxNext)
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}} {
		u.do(t, func() error {
			h, err := netlink.NewHandle(netlinkFamilies...)
			if err != nil {
				return err
			}
			defer h.Close()
			attachForeign(t, u.port, ebpf.AttachTCXIngress, others, link.Head())
			for _, i := range order {
				if err := places[i].attach(h, u.port, programs[places[i].name]); err != nil {
					return err
				}
			}
			chain, err := steerFilter.chain(u.port)
			if err != nil {
				return err
			}
			var got []string
			for _, id := range chain.programs {
				got = append(got, programName(id))
			}
			if want := []string{"weft_silent", "weft_steer", "weft_decap", "weft_edge", "others"}; !slices.Equal(got, want) {
				t.Errorf("attached as %v: %v, want %v", order, got, want)
			}
			for _, p := range places {
				if id, err := p.program(h, u.port); err != nil || id == 0 {
					t.Errorf("%s: program %d, %v", p.name, id, err)
				}
				if err := p.detach(h, u.port); err != nil {
					return err
				}
			}
			return detachForeign(u.port, ebpf.AttachTCXIngress, others)
		})
	}
}

// What Repair costs when there is nothing to mend; cpu-ns/op whatever else the machine
// does.
func BenchmarkOffload_Repair(b *testing.B) {
	top := mustParse(b, "fat-tree:k=4")
	cfg := OffloadConfig{Uplink: "p0", Addresses: []netip.Addr{top.Node(0).Addr}, Topology: top, Policy: mustPolicy(b, "drb"), PerPacketTCP: true}
	run := func(b *testing.B) {
		ns := testNamespace(b, "repair")
		ethernetPair(b, ns, "p0", "p1")
		err := inNamed(ns, func() error {
			o, err := AttachOffload(cfg)
			if err != nil {
				return err
			}
			defer o.Close()
			b.ReportAllocs()
			var from, to unix.Rusage // of this thread, which inNamed has locked
			unix.Getrusage(unix.RUSAGE_THREAD, &from)
			for b.Loop() {
				if mended, err := o.Repair(); err != nil || mended != nil {
					return errors.Join(err, errors.New("mended something"))
				}
			}
			unix.Getrusage(unix.RUSAGE_THREAD, &to)
			spent := to.Utime.Nano() + to.Stime.Nano() - from.Utime.Nano() - from.Stime.Nano()
			b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("TCX", run)
	onlyClsact.Store(true)
	defer onlyClsact.Store(false)
	b.Run("clsact", run)
}
