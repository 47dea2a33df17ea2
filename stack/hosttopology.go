package stack

import (
	"errors"
	"fmt"

	"weft/topology"
)

// SetTopology makes the Host spread later packets over the live paths of t. Once it
// has returned, nothing is sent by a path that is dead in t, unless all paths to a
// destination are dead: then all are tried (topology.PathsOrAll). Connections stay. t
// must contain the Host's address. With Config.Liveness the Host also leaves out what
// it knows by itself to be dead. A Device that chooses paths is told as well
// (PathDevice). If the device fails, SetTopology returns its error, and the
// device may still use the paths of before.
func (h *Host) SetTopology(t *topology.Topology) error {
	if t == nil {
		return errors.New("stack: SetTopology: no topology")
	}
	if h.tunnel {
		return errors.New("stack: SetTopology: a Tunnel has none")
	}
	id, ok := t.ByAddr(h.address)
	if !ok || int(id) >= t.NumHosts() {
		return fmt.Errorf("stack: SetTopology: %v is no host of %v", h.address, t)
	}
	if err := h.egress.Carries(t); err != nil {
		return fmt.Errorf("stack: SetTopology: %w", err)
	}
	if t.Node(id).Addr.Is6() {
		return fmt.Errorf("stack: SetTopology: %v is the fabric as an IPv6 address sees it: that is for SetTopology6", t)
	}
	if done, err := h.four.setTopology(t); done {
		return err
	}
	h.setting.Lock()
	defer h.setting.Unlock()
	h.egress.SetTopology(t)
	if h.chooser == nil {
		return nil
	}
	err := h.chooser.SetTopology(t)
	h.journal.Device(err)
	return err
}

// SetTopology6 is SetTopology of IPv6 packets. t is the fabric as Config.Address6 sees it. It
// may be another fabric than that of Topology for the moment between two calls. The Host
// must have begun with a Config.Topology6.
func (h *Host) SetTopology6(t *topology.Topology) error {
	if t == nil {
		return errors.New("stack: SetTopology6: no topology")
	}
	if h.six == nil {
		return errors.New("stack: SetTopology6: the Host has begun without a Config.Topology6")
	}
	id, ok := t.ByAddr(h.address6)
	if !ok || t.Computed() || t.Node(id).Addr != h.address6 {
		return fmt.Errorf("stack: SetTopology6: %v is not the fabric as %v sees it", t, h.address6)
	}
	if err := h.egress.Carries(t); err != nil {
		return fmt.Errorf("stack: SetTopology6: %w", err)
	}
	if done, err := h.six.setTopology(t); done {
		return err
	}
	h.egress.Six().SetTopology(t)
	return nil
}

// Topology6 is Topology of IPv6 packets; nil without a Config.Topology6.
func (h *Host) Topology6() *topology.Topology {
	if h.six == nil {
		return nil
	}
	return h.egress.Six().Topology()
}

// Topology returns the topology in use: what SetTopology was given, less what
// the Host does not trust on its own evidence.
func (h *Host) Topology() *topology.Topology { return h.egress.Topology() }

// Congestion returns what the Host's policy knows of the paths to each rack that
// it sends to; nil where the policy does not look at congestion.
func (h *Host) Congestion() []Congestion { return h.egress.Congestion() }
