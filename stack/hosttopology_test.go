package stack

import (
	"errors"
	"sync/atomic"
	"testing"

	"weft/link"
	"weft/topology"
)

// choosingDevice is told of topologies, which it refuses on demand.
type choosingDevice struct {
	encapsulator
	*link.Memory
	refuses atomic.Bool
	refused atomic.Int64
	told    atomic.Pointer[topology.Topology]
}

var errRefused = errors.New("refused")

func (d *choosingDevice) SetTopology(t *topology.Topology) error {
	if d.refuses.Load() {
		d.refused.Add(1)
		return errRefused
	}
	d.told.Store(t)
	return nil
}

// below puts it between a Host and its device.
func (d *choosingDevice) below(c *Config) {
	d.Memory = c.Device.(*link.Memory)
	c.Device = d
}

// When SetTopology has returned the device has been told, or the caller that it
// was not; a Host that watches its paths then goes on trying.
func TestHost_tellsADeviceThatChoosesPaths(t *testing.T) {
	core, _ := fatTree.Lookup("3.1")
	other, _ := fatTree.Lookup("3.2")
	for name, l := range map[string]*Liveness{"told by others": nil, "watching": {Budget: -1}} {
		t.Run(name, func(t *testing.T) {
			near := &choosingDevice{}
			h := newHost(t, newWire(t), addrA, near.below, func(c *Config) { c.Liveness = l })
			for _, top := range []*topology.Topology{fatTree.WithoutNode(core.ID), fatTree} {
				if err := h.SetTopology(top); err != nil {
					t.Fatal(err)
				}
				if got := near.told.Load(); got == nil || len(got.Down()) != len(top.Down()) {
					t.Errorf("SetTopology without %d links has returned, and the device knows %v", len(top.Down()), got)
				}
			}
			near.refuses.Store(true)
			down := fatTree.WithoutNode(other.ID)
			if err := h.SetTopology(down); !errors.Is(err, errRefused) {
				t.Errorf("the device refuses: %v", err)
			}
			if l == nil {
				return
			}
			eventually(t, "it is tried again", func() bool { return near.refused.Load() > 1 })
			near.refuses.Store(false)
			eventually(t, "the device knows", func() bool { return len(near.told.Load().Down()) == len(down.Down()) })
			if n := h.Stats().Liveness.Untold; n != uint64(near.refused.Load()) {
				t.Errorf("%d refusals are counted of %d", n, near.refused.Load())
			}
		})
	}
}
