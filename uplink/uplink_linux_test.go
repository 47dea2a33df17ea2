package uplink

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/encap"
	"weft/internal/hostprog"
	"weft/internal/hostsetup"
	"weft/internal/kernel/kerneltest"
	"weft/internal/slowtest"
	"weft/stack"
)

var (
	_ stack.Device      = (*Device)(nil)
	_ stack.SuperDevice = (*Device)(nil)
	_ stack.PathDevice  = (*Device)(nil)
	_ stack.QueueDevice = (*Device)(nil)
)

const (
	near = 0 // h0.0.2
	far  = 4 // h1.0.2, in another pod: four paths
)

// Whole super-segments go over all four cores in equal parts, and the kernel sees
// nothing of them.
func TestOpen_presto(t *testing.T) {
	n := newNetwork(t)
	from, sender := n.open(t, near, "presto")
	to, receiver := n.open(t, far, "presto")
	if !from.Encapsulates() || !to.Encapsulates() {
		t.Fatalf("fallback: %s", from.Offloads())
	}
	for _, want := range []string{"packet in and out", "tso4", "p0 encapsulates"} {
		if got := from.Offloads(); !strings.Contains(got, want) {
			t.Errorf("Offloads: %q, want %q in it", got, want)
		}
	}
	const size = 100 << 20
	transferBetween(t, sender, receiver, size)
	least, most, sum := ^uint64(0), uint64(0), uint64(0)
	got := shares(t, from)
	for _, b := range got {
		least, most, sum = min(least, b), max(most, b), sum+b
	}
	if len(got) != 4 || float64(least) < 0.97*float64(most) {
		t.Errorf("shares of the cores: %v", got)
	}
	s, err := from.Stats()
	if err != nil || sum < size || s.Encapsulated < size/1460 || s.Dropped != 0 {
		t.Errorf("sender: %+v, %v", s, err)
	}
	if s, err = to.Stats(); err != nil || !mostlyTaken(s, size) || s.Local != 0 {
		t.Errorf("receiver: %+v, %v", s, err)
	}
	if e := sender.Stats().Egress; e.Supers < size/65536/2 {
		t.Errorf("%d super-segments sent: %+v", e.Supers, e)
	}
	// By now the program would have given up on a reader that does not beat.
	time.Sleep(hostprog.SteerPatience + beatEvery)
	before := s
	transferBetween(t, sender, receiver, 10<<20)
	s, err = to.Stats()
	since := Stats{Taken: s.Taken - before.Taken, PassedDead: s.PassedDead - before.PassedDead}
	if err != nil || !mostlyTaken(since, 10<<20) {
		t.Errorf("receiver, after a pause: %+v, before: %+v, %v", s, before, err)
	}
	if i := receiver.Stats().Ingress; i.Supers < size/65536/2 {
		t.Errorf("%d super-segments received: %+v", i.Supers, i)
	}
}

// Each policy carries a transfer, encapsulated where it can be at the uplink.
func TestOpen_policies(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t)
	for _, c := range []struct {
		policy string
		uplink bool
		why    string
	}{
		{"ecmp", true, ""},
		{"flowcell-drb", true, ""},
		{"drb", false, ""}, // the Host's own work, and no fallback
		{"rand", true, ""},
		{"luopan", true, ""},
		{"letflow", true, ""},
		{"conga", true, ""},
		{"local", false, "the Host encapsulates: spray: policy local"},
	} {
		t.Run(c.policy, func(t *testing.T) {
			d, sender := n.open(t, near, c.policy)
			_, receiver := n.open(t, far, c.policy)
			if d.Encapsulates() != c.uplink {
				t.Errorf("the uplink encapsulates: %v", d.Encapsulates())
			}
			got := d.Offloads()
			if !strings.Contains(got, c.why) || c.why == "" && strings.Contains(got, "the Host encapsulates") {
				t.Errorf("Offloads: %q, want %q in it", got, c.why)
			}
			if !strings.Contains(got, "packet in and out") {
				t.Errorf("Offloads: %q, but the packet socket could be had", got)
			}
			transferBetween(t, sender, receiver, 10<<20)
			transferBetween(t, receiver, sender, 1<<20)
		})
	}
}

// By labels as by bounces: super-segments that the uplink's program encapsulates,
// and packets that the Host does, which the kernel forwards to the switch.
func TestOpen_labels(t *testing.T) {
	n := newNetwork(t)
	labels := func(c *stack.Config) { c.Carrier = encap.CarrierSRv6 }
	for _, c := range []struct {
		policy string
		uplink bool
	}{{"presto", true}, {"luopan", true}, {"drb", false}} {
		t.Run(c.policy, func(t *testing.T) {
			d, sender := n.open(t, near, c.policy, labels)
			_, receiver := n.open(t, far, c.policy, labels)
			if got := d.Offloads(); d.Encapsulates() != c.uplink || strings.Contains(got, "the Host encapsulates") {
				t.Errorf("the uplink encapsulates: %v; %s", d.Encapsulates(), got)
			}
			const size = 20 << 20
			transferBetween(t, sender, receiver, size)
			transferBetween(t, receiver, sender, 1<<20)
			if !c.uplink {
				return
			}
			sum := uint64(0)
			got := shares(t, d)
			for _, b := range got {
				sum += b
			}
			if s, err := d.Stats(); err != nil || len(got) != 4 || sum < size || s.Dropped != 0 || (s.Chosen > 0) != (c.policy == "luopan") {
				t.Errorf("shares of the cores %v; %+v, %v", got, s, err)
			}
			if e := sender.Stats().Egress; e.Supers < size/65536/2 {
				t.Errorf("%d super-segments sent: %+v", e.Supers, e)
			}
		})
	}
}

// Who samples paths tells the program, and learns from it where to.
func TestDevice_Choose(t *testing.T) {
	n := newNetwork(t)
	d, sender := n.open(t, near, "rand") // for which no Host chooses
	_, receiver := n.open(t, far, "rand")
	if err := d.Active(func(netip.Prefix, netip.Addr, uint64) {}); err != nil {
		t.Fatal(err)
	}
	rack := n.topology.RackOf(far)
	if err := d.Choose(rack, 2, time.Minute); err != nil {
		t.Fatal(err)
	}
	transferBetween(t, sender, receiver, 10<<20)
	core := n.topology.Paths(near, far).Addr(2)
	s, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range s.Bounces {
		if (b.Flowcells > 0) != (b.Addr == core) {
			t.Errorf("%d flowcells by %v, chosen was %v", b.Flowcells, b.Addr, core)
		}
	}
	asked := 0
	err = d.Active(func(r netip.Prefix, host netip.Addr, flowcells uint64) {
		if asked++; r != rack || host != n.topology.EmbeddedAddr(far) || flowcells < 10<<20/65536 {
			t.Errorf("%d flowcells to %v in %v", flowcells, host, r)
		}
	})
	if err != nil || asked != 1 {
		t.Errorf("%d racks, %v", asked, err)
	}
	other, _ := n.open(t, near+1, "drb")
	if err := other.Choose(rack, 2, time.Minute); err != errNoProgram {
		t.Errorf("without a program: %v", err)
	}
	if err := other.Active(nil); err != errNoProgram {
		t.Errorf("without a program: %v", err)
	}
}

// A path that is down is not used from the moment that the Host has been told,
// which tells the Device.
func TestDevice_hearsOfTopologiesFromItsHost(t *testing.T) {
	n := newNetwork(t)
	d, sender := n.open(t, near, "presto")
	_, receiver := n.open(t, far, "presto")
	transferBetween(t, sender, receiver, 10<<20)
	before := shares(t, d)
	core, _ := n.topology.Lookup("3.2")
	down := n.topology.WithoutNode(core.ID)
	if err := sender.SetTopology(down); err != nil {
		t.Fatal(err)
	}
	transferBetween(t, sender, receiver, 10<<20)
	for a, b := range shares(t, d) {
		if grown := b > before[a]; grown == (a == core.Addr) {
			t.Errorf("%v: %d bytes, %d before 3.2 (%v) was down", a, b, before[a], core.Addr)
		}
	}
}

// Programs of the same machine reach the Host, and it them, although the Host
// does not read where the kernel routes them.
func TestDevice_localPrograms(t *testing.T) {
	n := newNetwork(t)
	for _, c := range []struct{ name, policy string }{{"fast", "presto"}, {"by packets", "drb"}} {
		t.Run(c.name, func(t *testing.T) {
			d, host := n.open(t, near, c.policy)
			l, err := host.Listen("tcp", ":0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			transfer(t, n.kernelDial(near, l.Addr()), l, 10<<20)
			if s, err := d.Stats(); err != nil || s.Local == 0 {
				t.Errorf("%+v, %v", s, err)
			}
			var k net.Listener
			n.do(t, near, func() (err error) {
				k, err = net.Listen("tcp4", n.topology.Node(near).Addr.String()+":0")
				return err
			})
			defer k.Close()
			transfer(t, func() (net.Conn, error) { return host.DialContext(t.Context(), "tcp", k.Addr().String()) }, k, 10<<20)
		})
	}
}

// Somebody has taken the steering program away, so that the kernel gets the
// fabric's packets, too, and routes them into the TUN: they must not go round.
func TestDevice_leadsRoundOnlyLocalPackets(t *testing.T) {
	n := newNetwork(t)
	d, host := n.open(t, near, "presto")
	if err := d.steer.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := host.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	transfer(t, n.kernelDial(far, l.Addr()), l, 10<<20)
	if got := d.local.Load(); got != 0 {
		t.Errorf("%d packets from another machine were led round", got)
	}
	transfer(t, n.kernelDial(near, l.Addr()), l, 1<<20)
	if d.local.Load() == 0 {
		t.Error("none of this machine's own were")
	}
}

// What a packet socket or the programs need is not there: all goes by the TUN.
func TestOpen_fallsBack(t *testing.T) {
	n := newNetwork(t)
	_, receiver := n.open(t, far, "presto")
	for _, c := range []struct {
		name, want   string
		caps         []int
		encapsulates bool
	}{
		{"no eBPF", "the Host encapsulates: spray: uplink p0: ", []int{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_DAC_OVERRIDE}, false},
		{"no packet sockets", "the TUN receives: packet p0: ", []int{unix.CAP_NET_ADMIN, unix.CAP_BPF, unix.CAP_DAC_OVERRIDE}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d *Device
			var sender *stack.Host
			n.do(t, near, func() error {
				return kerneltest.WithCapabilities(func() (err error) {
					d, sender, err = n.tryOpen(near, "presto")
					return err
				}, c.caps...)
			})
			defer sender.Close()
			if got := d.Offloads(); d.Encapsulates() != c.encapsulates || !strings.Contains(got, c.want) || !strings.Contains(got, "operation not permitted") {
				t.Errorf("the uplink encapsulates: %v, %s", d.Encapsulates(), got)
			}
			transferBetween(t, sender, receiver, 10<<20)
			transferBetween(t, receiver, sender, 10<<20)
			if !c.encapsulates && len(sender.Stats().Paths) != 4 {
				t.Errorf("paths: %v", sender.Stats().Paths)
			}
			l, err := sender.Listen("tcp", ":0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			transfer(t, n.kernelDial(near, l.Addr()), l, 1<<20)
			sender.Close()
			if found := n.trace(t); found != nil {
				t.Errorf("left %v", found)
			}
		})
	}
}

// The programs are one of a kind: who comes second does without, and disturbs
// nothing.
func TestOpen_besideAnother(t *testing.T) {
	n := newNetwork(t)
	_, receiver := n.open(t, far, "presto")
	first, sender := n.open(t, near, "presto")
	t.Run("the same address", func(t *testing.T) {
		n.do(t, near, func() error {
			if d, err := Open(stack.Config{Address: n.topology.EmbeddedAddr(near), Topology: n.topology}, Options{}); err == nil {
				t.Error("opened")
				return d.Close()
			} else if !strings.Contains(err.Error(), "is another weft using this address") {
				t.Error(err)
			}
			return nil
		})
	})
	t.Run("another address", func(t *testing.T) {
		var second *Device
		n.do(t, near, func() (err error) {
			second, err = Open(stack.Config{Address: n.topology.EmbeddedAddr(near + 1), Topology: n.topology, Policy: "presto"}, Options{})
			return err
		})
		defer second.Close()
		if got := second.Offloads(); second.Encapsulates() || !strings.Contains(got, "no programs at p0: this network namespace is in use by weft, process ") {
			t.Error(got)
		}
	})
	t.Run("weft host", func(t *testing.T) {
		n.do(t, near, func() error {
			if _, err := hostsetup.Cleanup(); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("its clean-up, while our programs are there: %v", err)
			}
			return nil
		})
	})
	before := shares(t, first)
	transferBetween(t, sender, receiver, 10<<20)
	if after := shares(t, first); len(after) != 4 || len(before) > 4 {
		t.Errorf("shares of the cores: %v", after)
	}
}

// trace is everything in a host's namespace that a Device could leave behind.
func (n network) trace(t *testing.T) (found []string) {
	t.Helper()
	n.do(t, near, func() error {
		ifs, err := net.Interfaces()
		if err != nil {
			return err
		}
		for _, i := range ifs {
			if i.Name != "lo" && i.Name != "p0" {
				found = append(found, "device "+i.Name)
			}
		}
		spray, err1 := hostprog.DetachSpray("p0")
		if spray > 0 {
			found = append(found, "spray")
		}
		steer, err2 := hostprog.DetachSteer("p0")
		if steer > 0 {
			found = append(found, "steer")
		}
		dir, err3 := hostsetup.Dir()
		if _, err := os.Stat(dir); err == nil {
			found = append(found, dir)
		}
		return errors.Join(err1, err2, err3)
	})
	return found
}

func TestClose_leavesNothing(t *testing.T) {
	n := newNetwork(t)
	for _, policyName := range []string{"presto", "drb", "letflow"} {
		d, h := n.open(t, near, policyName)
		if err := errors.Join(h.Close(), d.Close()); err != nil {
			t.Error(err)
		}
		if found := n.trace(t); found != nil {
			t.Errorf("%s left %v", policyName, found)
		}
		if _, err := d.Stats(); policyName == "presto" && err == nil {
			t.Error("Stats of a closed Device")
		}
	}
}

// What a process that was killed has left is taken over, and nothing of it stays.
func TestOpen_afterACrash(t *testing.T) {
	n := newNetwork(t)
	d, h := n.open(t, near, "presto")
	h.Close()
	n.do(t, near, func() error { // as a killed one leaves them
		o, err1 := hostprog.AttachSpray(hostprog.SprayConfig{Uplink: "p0", Addresses: []netip.Addr{n.topology.EmbeddedAddr(near)},
			Topology: n.topology, Self: near, Policy: mustPolicy(t, "presto")})
		s, err2 := hostprog.AttachSteer(hostprog.SteerConfig{Uplink: "p0",
			Rules: []hostprog.SteerRule{{Address: n.topology.EmbeddedAddr(near), What: hostprog.SteerEverything}}})
		t.Cleanup(func() { o.Close(); s.Close() })
		return errors.Join(err1, err2)
	})
	_, receiver := n.open(t, far, "presto")
	d, h = n.open(t, near, "presto")
	transferBetween(t, h, receiver, 10<<20)
	if got := shares(t, d); len(got) != 4 {
		t.Errorf("shares of the cores: %v", got)
	}
	h.Close()
	if found := n.trace(t); found != nil {
		t.Errorf("left %v", found)
	}
}

func TestOpen_fiftyTimes(t *testing.T) {
	slowtest.System(t)
	n := newNetwork(t)
	_, receiver := n.open(t, far, "presto")
	again := func() {
		var h *stack.Host
		n.do(t, near, func() (err error) {
			_, h, err = n.tryOpen(near, "presto")
			return err
		})
		transferBetween(t, h, receiver, 100_000)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		again()
	}
	fds, goroutines := openFiles(t), runtime.NumGoroutine()
	for range 50 {
		again()
	}
	// Netstack's goroutines of the last connections may be about to end.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if openFiles(t) <= fds+3 && runtime.NumGoroutine() <= goroutines+5 {
			return
		}
	}
	t.Errorf("%d files and %d goroutines, after 50 more %d and %d", fds, goroutines, openFiles(t), runtime.NumGoroutine())
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// mostlyTaken reports whether all packets of a transfer came in, and by the Device unless
// the machine is so busy that a heartbeat is late: then the kernel has the packets of that
// moment.
func mostlyTaken(s Stats, size uint64) bool {
	packets := size / 1460
	return s.Taken+s.PassedDead >= packets*9/10 && s.Taken >= packets/4
}
