package wire

import (
	"errors"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestPorts_carrier(t *testing.T) {
	a, b := pair(t)
	a.set("p1", false)
	r := b.open(Config{Interfaces: []string{"p0", "p1", "p2"}})
	if got := r.Missing(); !slices.Equal(got, []string{"p2"}) {
		t.Errorf("missing: %v", got)
	}
	r.settle()
	if want := []event{{0, true}, {1, false}, {2, false}}; !slices.Equal(r.events, want) {
		t.Errorf("in the beginning %v, want %v", r.events, want)
	}
	r.events = nil
	a.set("p0", false)
	r.state(0, false)
	a.set("p1", true)
	r.state(1, true)
	a.set("p0", true)
	r.state(0, true)
	b.set("p0", false) // one's own end
	r.state(0, false)
	b.set("p0", true)
	r.state(0, true)
	want := []event{{0, false}, {1, true}, {0, true}, {0, false}, {0, true}}
	if !slices.Equal(r.events, want) {
		t.Errorf("events %v, want %v", r.events, want)
	}
}

// A device that is made anew has forgotten the group, even with the same index.
func TestPorts_deviceMadeAnew(t *testing.T) {
	a, b := pair(t)
	from, to := a.open(twoPorts), b.open(twoPorts)
	from.settle()
	to.settle()
	for i, index := range []int{901, 955, 955} {
		a.remove("p0")
		from.state(0, false)
		to.state(0, false)
		from.Send(0, []byte("to nobody"))
		cable(t, a, b, "p0", index)
		from.state(0, true)
		to.state(0, true)
		to.messages = nil
		from.Send(0, []byte("again"))
		to.until("a message by the new cable", func() bool { return len(to.messages) > 0 })
		from.messages = nil
		to.Send(0, []byte("back"))
		from.until("a message back", func() bool { return len(from.messages) > 0 })
		if s := to.Stats(); s.Rejoined != uint64(i+1) {
			t.Errorf("rejoined %d times, want %d", s.Rejoined, i+1)
		}
	}
	if s := from.Stats(); s.Ports[0].SendErrors != 3 {
		t.Errorf("%d errors of sending, want 3", s.Ports[0].SendErrors)
	}
}

func TestPorts_renamed(t *testing.T) {
	a, b := pair(t)
	r := b.open(twoPorts)
	r.settle()
	rename := func(from, to string) {
		b.must(func() error {
			l, err := netlink.LinkByName(from)
			if err != nil {
				return err
			}
			return errors.Join(netlink.LinkSetDown(l), netlink.LinkSetName(l, to), netlink.LinkSetUp(l))
		})
	}
	rename("p0", "old0")
	r.state(0, false)
	rename("p1", "p0")
	r.state(0, true)
	r.state(1, false)
	from := a.open(twoPorts)
	from.state(1, true) // its carrier comes back some time after the other end's
	from.Send(1, []byte("by the second cable"))
	r.until("a message", func() bool { return len(r.messages) > 0 })
	if r.messages[0].port != 0 {
		t.Errorf("came by port %d", r.messages[0].port)
	}
}

// More happens than the kernel keeps for us: all is listed again.
func TestPorts_overrun(t *testing.T) {
	a, b := pair(t)
	c := twoPorts
	c.monitorBuffer = 4096
	r := b.open(c)
	r.settle()
	b.flap("lo")
	a.set("p1", false)
	r.state(1, false)
	r.state(0, true)
	if s := r.Stats(); s.Overruns == 0 {
		t.Error("no overrun: the test shows nothing")
	}
}

// The carrier was lost and is back before anybody looked, and the messages that
// say so are lost, too: the kernel's count remains.
func TestPorts_aLossThatNobodySaw(t *testing.T) {
	_, b := pair(t)
	c := twoPorts
	c.monitorBuffer = 4096
	r := b.open(c)
	r.settle()
	r.events = nil
	b.flap("lo") // fills the buffer
	b.set("p0", false)
	b.set("p0", true)
	b.running("p0")
	r.until("an overrun", func() bool { return r.Stats().Overruns > 0 })
	r.until("down and up", func() bool {
		return slices.Contains(r.events, event{0, false}) && r.events[len(r.events)-1].up
	})
	r.state(0, true)
}
