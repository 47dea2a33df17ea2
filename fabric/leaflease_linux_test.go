package fabric

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"weft/conga"
	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// Packets take paths while the lease lasts, and the kernel's routes afterwards. What comes from
// other racks is handled as ever.
func TestLeaf_lease(t *testing.T) {
	for _, rule := range []string{"conga", "luopan"} {
		t.Run(rule, func(t *testing.T) {
			r := newLeafRun(t, rule)
			here, away := hostIn(r.prefixOf(t, ownRack), 2), hostIn(r.prefixOf(t, r.rack()), 3)
			packet := tcp(here, away, 5<<16|80, 0, 7, 10)
			taken := func() bool {
				t.Helper()
				verdict, out := r.run(t, true, packet, 0)
				if verdict != kernel.TCUnspec {
					t.Fatalf("verdict %d", verdict)
				}
				return !bytes.Equal(out, packet)
			}
			for _, c := range []struct {
				lease uint64
				want  bool
			}{{0, true}, {r.now, true}, {r.now - 1, false}, {r.now + 1, true}} {
				r.put(t, r.Lease, uint32(0), c.lease)
				if got := taken(); got != c.want {
					t.Errorf("with a lease until %d at %d a path is taken: %v", c.lease, r.now, got)
				}
			}
			r.put(t, r.Lease, uint32(0), r.now-1)
			marked := tcp(away, here, 80<<16|5, conga.MarkDSCP<<2, conga.Mark{Tag: 1}.Put(), 10)
			if _, out := r.run(t, false, marked, 0); rule == "conga" && bytes.Equal(out, marked) {
				t.Error("a mark of another rack's reaches a host")
			}
			if s := r.stats(t); s.Leaf.Late != 1 || s.Chosen != 3 {
				t.Errorf("%+v, %+v", s, s.Leaf)
			}
		})
	}
}

// Attaching and repairing renew the lease, but not that of paths that could not be replaced.
func TestBalance_lease(t *testing.T) {
	ns, cfg := leafPorts(t)
	cfg.Rule, cfg.Leaf.Lease = "conga", time.Hour
	kerneltest.Shell(t, ns, "ip link set p2 mtu 1520; ip link set p3 mtu 1520")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := kernel.InNamespace(ns, func() error {
		b, err := AttachBalance(cfg)
		if err != nil {
			return err
		}
		defer b.Detach()
		until := func() (until uint64) {
			if err := b.in.Maps[leafMapLease].Lookup(uint32(0), &until); err != nil {
				t.Error(err)
			}
			return until
		}
		now, err := kernel.Monotonic()
		if err != nil {
			return err
		}
		last := until()
		if last == 0 || last > now+uint64(time.Hour) {
			t.Errorf("at %d the lease is until %d", now, last)
		}
		for name, f := range map[string]func() ([]string, error){"Repair": b.Repair, "RepairSettings": b.RepairSettings} {
			if _, err := f(); err != nil {
				return err
			}
			if next := until(); next <= last {
				t.Errorf("after %s the lease is until %d as before", name, next)
			}
			last = until()
		}
		b.stale = true
		if _, err := b.RepairSettings(); err != nil || until() != last {
			t.Errorf("the lease of old paths was renewed, %v", err)
		}
		if _, err := b.Repair(); err != nil || until() <= last {
			t.Errorf("the lease was not renewed, %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
