package fabric

import (
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// wired makes a namespace with one link in it and runs f there.
func wired(t *testing.T, f func() error) {
	t.Helper()
	name := kerneltest.Namespace(t, "meter")
	err := kernel.InNamespace(name, func() error {
		veth := netlink.NewVeth(netlink.NewLinkAttrs())
		veth.Name, veth.PeerName = "p0", "p1"
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		return f()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A meter outlives who attached it, is found by others, replaced by a second one,
// and gone when it is detached.
func TestMeter_life(t *testing.T) {
	one := MeterConfig{Ports: []MeterPort{{Name: "p0", RateBits: 20e6}}}
	two := MeterConfig{Ports: []MeterPort{{Name: "p0", RateBits: 10e6}, {Name: "p1"}}}
	wired(t, func() error {
		m, err := AttachMeter(one)
		if err != nil {
			return err
		}
		passed, err := m.Descriptors()
		if err != nil {
			return err
		}
		if err := m.Close(); err != nil {
			return err
		}
		if _, err := m.Ports(); err != errMeterClosed {
			t.Errorf("after Close: %v", err)
		}
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		links, err := kernel.Links(h, []string{"p0", "p1"})
		if err != nil {
			return err
		}
		found := func(want ...float64) {
			t.Helper()
			have, err := ReadMeters(h, links)
			if err != nil {
				t.Error(err)
			}
			n := 0
			for i, rate := range want {
				if got := have[links[i].Attrs().Index].RateBits; got != rate {
					t.Errorf("port %d is metered at %g bit/s, want %g", i, got, rate)
				}
				if rate > 0 {
					n++
				}
			}
			if len(have) != n {
				t.Errorf("%d ports are metered, want %d", len(have), n)
			}
		}
		found(20e6, 0)
		inherited, err := InheritMeter(passed, []string{"p0"})
		if err != nil {
			return err
		}
		defer inherited.Close()
		if ports, err := inherited.Ports(); err != nil || len(ports) != 1 || ports[0].Port != "p0" || ports[0].RateBits != 20e6 {
			t.Errorf("inherited: %+v, %v", ports, err)
		}

		again, err := AttachMeter(two)
		if err != nil {
			return err
		}
		defer again.Close()
		found(10e6, 10e9) // p1 by what a veth says
		if n, err := DetachMeter([]string{"p0", "p1"}); n != 2 || err != nil {
			t.Errorf("detached %d: %v", n, err)
		}
		found(0, 0)
		if n, err := DetachMeter([]string{"p0", "p1"}); n != 0 || err != nil {
			t.Errorf("detached again %d: %v", n, err)
		}
		return nil
	})
}

// The rate of a port that has a token bucket is the bucket's.
func TestAttachMeter_asThePortIs(t *testing.T) {
	wired(t, func() error {
		link, err := netlink.LinkByName("p0")
		if err != nil {
			return err
		}
		err = netlink.QdiscReplace(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       2_500_000, Limit: 75000, Buffer: netlink.Xmittime(2_500_000, 3200),
		})
		if err != nil {
			return err
		}
		h, err := netlink.NewHandle(kernel.Families...)
		if err != nil {
			return err
		}
		defer h.Close()
		for given, want := range map[MeterPort]MeterPort{
			{Name: "p0"}:                    {Name: "p0", RateBits: 20e6, QueueBytes: 75000, BurstBytes: 3200},
			{Name: "p0", QueueBytes: 30000}: {Name: "p0", RateBits: 20e6, QueueBytes: 30000},
			{Name: "p0", RateBits: 20e6}:    {Name: "p0", RateBits: 20e6, QueueBytes: 75000, BurstBytes: 3200},
			{Name: "p0", RateBits: 1e6}:     {Name: "p0", RateBits: 1e6},
		} {
			got, err := asTheyAre(h, []netlink.Link{link}, []MeterPort{given})
			if err != nil {
				return err
			}
			if got[0] != want {
				t.Errorf("%+v is %+v, want %+v", given, got[0], want)
			}
		}
		return nil
	})
}

func TestAttachMeter_errors(t *testing.T) {
	wired(t, func() error {
		for want, c := range map[string]MeterConfig{
			"Ports has 0 ports":       {},
			"port p7: no such device": {Ports: []MeterPort{{Name: "p7"}}},
			"port lo: frames":         {Ports: []MeterPort{{Name: "lo", RateBits: 1e9}}},
			`"p0" is there twice`:     {Ports: []MeterPort{{Name: "p0"}, {Name: "p0"}}},
			"RateBits is 1":           {Ports: []MeterPort{{Name: "p0", RateBits: 1}}},
			"QueueBytes is -1":        {Ports: []MeterPort{{Name: "p0", QueueBytes: -1}}},
			"BurstBytes is -1":        {Ports: []MeterPort{{Name: "p0", BurstBytes: -1}}},
			"ECNBytes is 2":           {Ports: []MeterPort{{Name: "p0", QueueBytes: 1, ECNBytes: 2}}},
			"ECN is 1s, 2500000":      {Ports: []MeterPort{{Name: "p0", RateBits: 20e6, QueueBytes: 75000, ECN: QueueLength{Time: time.Second}}}},
			"ECN is -1":               {Ports: []MeterPort{{Name: "p0", ECN: QueueLength{Bytes: -1}}}},
			"is both 1 bytes and 1µs": {Ports: []MeterPort{{Name: "p0", ECN: QueueLength{Bytes: 1, Time: time.Microsecond}}}},
			"ECN is 1 and ECNBytes":   {Ports: []MeterPort{{Name: "p0", ECNBytes: 1, ECN: QueueLength{Bytes: 1}}}},
			"Tau is 1ns":              {Ports: []MeterPort{{Name: "p0", Tau: 1}}},
			"at 1e+12 bit/s it must":  {Ports: []MeterPort{{Name: "p0", RateBits: 1e12, Tau: time.Minute}}},
			"QCMUnit is -1":           {Ports: []MeterPort{{Name: "p0", QCMUnit: -1}}},
		} {
			if m, err := AttachMeter(c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v", want, m, err)
			}
		}
		if n, err := DetachMeter([]string{"p0", "p1"}); n != 0 || err != nil {
			t.Errorf("refused, and %d ports are metered: %v", n, err)
		}
		return nil
	})
}
