package wire

import (
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Where both ends of a veth have the same index the kernel takes its time with the
// message of a lost carrier (linkwatch_urgent_event), as it does when its network
// lock is held. The count is there at once.
func TestPorts_carrierIsLostBeforeTheKernelSaysSo(t *testing.T) {
	a, b := newEnd(t, "10.0.0.1"), newEnd(t, "10.0.0.2")
	cable(t, a, b, "p0", 2) // the other end gets the first that is free, which is 2
	r := b.open(Config{Interfaces: []string{"p0"}, CarrierEvery: time.Millisecond, Shared: true})
	slow := b.open(Config{Interfaces: []string{"p0"}, Shared: true})
	r.settle()
	slow.settle()
	if _, err := os.Stat("/sys/class/net/lo/carrier_down_count"); err != nil {
		t.Skipf("this machine does not show how often a carrier was lost: %v", err)
	}
	// Where the kernel has had no such message for a second it sends the next at once.
	late := 0
	for range 5 {
		counted, before := r.Stats().Early, time.Now()
		a.set("p0", false)
		r.state(0, false)
		known := time.Since(before)
		slow.state(0, false)
		said := time.Since(before)
		t.Logf("known after %v, said after %v", known, said)
		if said-known > 300*time.Millisecond {
			late++
			if got := r.Stats().Early; got != counted+1 {
				t.Errorf("known after %v, said after %v, but %d losses were seen before the kernel's message, and %d before that", known, said, got, counted)
			}
		}
		r.events = nil
		a.set("p0", true)
		r.state(0, true)
		slow.state(0, true)
		if want := []event{{0, true}}; !slices.Equal(r.events, want) {
			t.Errorf("events %v, want %v: the late message of the loss is no news", r.events, want)
		}
	}
	if late == 0 {
		t.Error("the kernel was never late")
	}
}

// A message from before a loss that was counted says nothing any more.
func TestMonitor_oldMessageAfterALoss(t *testing.T) {
	var told []bool
	m := &monitor{ports: make([]watched, 1), byName: map[string]int{"p0": 0},
		join:   func(int, link) error { return nil },
		report: func(_ int, up bool) { told = append(told, up) }}
	m.link(link{index: 7, name: "p0", up: true, losses: 3})
	m.lost(0, 4)
	m.link(link{index: 7, name: "p0", up: true, losses: 3})
	m.lost(0, 4)
	m.link(link{index: 7, name: "p0", up: false, losses: 4})
	m.link(link{index: 7, name: "p0", up: true, losses: 4})
	if want := []bool{true, false, true}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if m.early != 1 {
		t.Errorf("%d early losses", m.early)
	}
}

// A device of the same name and index in another namespace is another device.
func TestLosses_otherNamespacesDevice(t *testing.T) {
	a, b := newEnd(t, "10.0.0.1"), newEnd(t, "10.0.0.2")
	cable(t, a, b, "p0", 2)
	if r := a.open(Config{Interfaces: []string{"p0"}, CarrierEvery: time.Second}); r.losses.files[0] < 0 {
		t.Skip("this machine does not show how often a carrier was lost")
	}
	b.must(func() error {
		if dir, err := openSysfs(link{index: 2, name: "p0", address: []byte{2, 0, 0, 0, 0, 1}}); err == nil {
			unix.Close(dir)
			t.Error("the wrong device was opened")
		}
		return nil
	})
}
