package daemon

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"weft/encap"
	captured "weft/internal/capture/stream"
	"weft/internal/hostsetup"
	"weft/internal/probe"
	"weft/internal/service"
	"weft/liveness"
	"weft/topology"
)

// StatusSocket returns the path of the status socket of the daemon in the calling thread's
// network namespace, unless its configuration names another.
func StatusSocket() (string, error) {
	dir, err := hostsetup.Dir()
	return filepath.Join(dir, hostsetup.StatusSocket), err
}

// Cleanup removes what a dead daemon has left in the calling thread's network namespace,
// and returns a description of each thing removed.
func Cleanup() ([]string, error) { return hostsetup.Cleanup() }

// listen opens the status socket, in the place of one that a crash left.
func (d *daemon) listen() (err error) {
	if d.status, err = d.serveStatus(); err != nil {
		return d.config.lines.Errorf("status", "%w", err)
	}
	if d.metrics, err = service.ServeMetrics(d.config.Metrics, d.collector()); err != nil {
		return d.config.lines.Errorf("metrics.listen", "%w", err)
	}
	return nil
}

func (d *daemon) serveStatus() (io.Closer, error) {
	return service.ServeStatus(d.config.Status, StatusSocket, func() any { return d.snapshot() }, d.collector(),
		service.Route{Pattern: captured.Pattern, Root: true, Handler: captured.Serve(&d.tap)})
}

// repairStatus makes the socket anew that somebody has removed.
func (d *daemon) repairStatus() (did []string, err error) {
	if d.status == nil || !service.Gone(d.status) {
		return nil, nil
	}
	s, err := d.serveStatus()
	if err != nil {
		return nil, fmt.Errorf("the status socket is gone, and cannot be made again: %w", err)
	}
	err = d.status.Close()
	d.status = s
	return []string{"the status socket, which was gone"}, err
}

// snapshot returns the status.
func (d *daemon) snapshot() Status {
	s, _ := d.observe()
	return s
}

// health is what probes of both families have found, by the carrier in use.
type health struct {
	paths    []liveness.PathHealth
	probes   []probe.Stats
	carriage []*liveness.Carriage
}

// observe returns the status, and how paths are. The owner's lock is held only while what is
// the owner's is copied: the owner has to show every 200 ms that it lives, and anybody may ask.
func (d *daemon) observe() (s Status, h health) {
	s, b := d.copied()
	if s.Failures == nil {
		return s, h
	}
	v := d.views.get(b)
	v.tell(&s)
	h.paths, h.carriage = v.paths, []*liveness.Carriage{b.carriage, b.carriage6}
	if b.used != nil {
		h.probes = append(h.probes, b.used.Stats())
		s.Failures.Probes = h.probes[0]
	}
	if b.six != nil {
		h.probes = append(h.probes, b.six.Stats())
	}
	return s, h
}

// copied returns the status but for what follows from b.
func (d *daemon) copied() (s Status, b basis) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.config
	s = Status{Version: StatusVersion, Mode: c.mode(), Encapsulation: c.encapsulation(), Policy: c.Policy, Unit: c.policy().Unit.String(), MTU: d.place.mtu,
		Process: os.Getpid(), Uptime: int64(time.Since(d.started).Seconds()), Reloads: d.reloads,
		CongestionControl: c.CongestionControl, CongestionControlPrefixes: c.CongestionControlPrefixes}
	if c.Mode == ModeAuto {
		s.ModeWhy = c.auto.why
	}
	if d.place.address.IsValid() {
		s.Address = d.place.address.String()
	}
	if a := c.address6(); a.IsValid() {
		s.Address6 = a.String()
	}
	s.State, s.Trouble = StateWorking, d.trouble.why
	if !d.working {
		s.State = StateAway
	}
	repaired := d.repairs.Copy()
	s.Repairs, s.LatestRepairs = repaired.Count, repaired.Last
	if !c.tunnels() {
		s.Topology, s.Uplink = c.fabricName(), d.place.uplink.Name
		if d.place.uplink.Gateway.IsValid() {
			s.Gateway = d.place.uplink.Gateway.String()
		}
		s.Uplinks = d.uplinkStatus()
	}
	s.Others = d.others
	s.Behind, s.BehindUnnamed = c.behindStatus(d.place)
	if d.learner != nil {
		s.BGP = d.learner.status()
	}
	if d.follower != nil {
		b = basis{d.follower.probing(), d.topology, d.six.topology, d.carriage, d.six.carriage}
		s.Failures = &FailureStatus{Changes: d.changes, Updates: d.follower.updated()}
		s.Congestion, s.Samples = d.congestion(), d.sampleStatus()
	}
	if o, ok := d.spray.(counter); ok {
		s.Offload = orError(d.sprayed(o))
	}
	s.Supers, s.LateCut = d.superStatus(), d.lateStatus()
	s.QCN, s.Scheduler = d.pacingStatus(), d.schedulerStatus()
	if m := d.meshStatus(); m != nil {
		s.Mesh = m
	}
	if d.receiver != nil {
		s.Devices, s.Steer, s.Order = d.receiver.devices(), d.receiver.steering(), d.receiver.ordering()
	}
	if r, ok := d.receiver.(*hostReceiver); ok {
		if p, ok := r.dataplane.(interface{ Status() any }); ok {
			s.Dataplane = p.Status()
		}
	}
	return s, b
}

func (d *daemon) uplinkStatus() (list []UplinkStatus) {
	for i, w := range d.place.ways {
		u := UplinkStatus{Device: w.Name, Up: !w.dead(), Switch: d.config.fabric.Node(d.config.fabric.Uplinks()[i].Edge).Name}
		if w.Gateway.IsValid() {
			u.Gateway = w.Gateway.String()
		}
		list = append(list, u)
	}
	return list
}

// orError puts why something is not known in its place.
func orError[T any](v T, err error) any {
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return v
}

// summary says in a line what the daemon does.
func (d *daemon) summary() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.describe()
}

func (d *daemon) describe() string {
	c := d.config
	if c.joins() {
		return fmt.Sprintf("mode %s, peers by UDP as %s says, policy %s", c.modeText(), c.UDP.Directory, c.Policy)
	}
	if c.tunnels() {
		return fmt.Sprintf("mode %s, %d peers by UDP, policy %s", c.modeText(), len(c.UDP.Peers), c.Policy)
	}
	if c.fabric == nil {
		return fmt.Sprintf("mode %s, policy %s, waits for its switches to tell what the fabric is", c.modeText(), c.Policy)
	}
	by := d.place.uplink.Name
	if c.carrier() != encap.CarrierIPIP {
		by += " with " + c.encapsulation()
	}
	p := c.Policy
	if c.policy().Adapts {
		p += fmt.Sprintf(" (%v)", c.policy().Unit)
	}
	return fmt.Sprintf("mode %s, %s in %s by %s, policy %s", c.modeText(), d.place.address, c.fabricName(), by, p)
}

// fabricName is how the fabric is called: a graph by where it is from and its size.
func (c *Config) fabricName() string {
	switch {
	case c.fabric == nil:
		return c.Topology + " (not known yet)"
	case c.fabric.Computed():
		return c.fabric.String()
	}
	racks, bounces := 0, 0
	for range c.fabric.Racks() {
		racks++
	}
	for n := range c.fabric.Nodes() {
		if n.Layer > topology.LayerEdge {
			bounces++
		}
	}
	return fmt.Sprintf("%s (%d racks, %d bouncing switches)", c.Topology, racks, bounces)
}
