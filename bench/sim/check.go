package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/bench/sim/spray"
	"weft/topology"
)

// Bounds of a Config.
const (
	maxDuration = 24 * time.Hour
	maxDelay    = time.Second
	maxQueue    = 1 << 30
	// maxConnections is of two hosts, one way.
	maxConnections = 64
)

// check fills in defaults, and names the first field of the Config that is wrong and
// what would not be. What Policy, Spray and Options may be others know.
func (s *simulation) check() (err error) {
	c := &s.config
	switch {
	case c.Topology == nil && c.Graph == nil:
		return errors.New("sim: Topology is missing; give one, or a Graph")
	case c.Topology != nil && c.Graph != nil:
		return errors.New("sim: Topology and Graph are both given; give one of them")
	case c.Duration <= 0 || c.Duration > maxDuration:
		return fmt.Errorf("sim: Duration is %v; want more than 0 and at most %v", c.Duration, maxDuration)
	case c.Warmup < 0 || c.Warmup >= c.Duration:
		return fmt.Errorf("sim: Warmup is %v; want 0 or more and less than Duration, %v", c.Warmup, c.Duration)
	case c.Delay < 0 || c.Delay > maxDelay:
		return fmt.Errorf("sim: Delay is %v; want from 0 to %v", c.Delay, maxDelay)
	case c.HostQueueBytes < 0 || c.HostQueueBytes > maxQueue:
		return fmt.Errorf("sim: HostQueueBytes is %d; want from 0 to %d", c.HostQueueBytes, maxQueue)
	case c.Connections < 0 || c.Connections > maxConnections:
		return fmt.Errorf("sim: Connections is %d; want from 1 to %d, or 0 for one of each flow's own", c.Connections, maxConnections)
	case c.Workload == nil && c.OpenLoop == nil:
		return errors.New("sim: Workload is missing; give one, or OpenLoop")
	case c.OnSample != nil && c.SampleEvery <= 0:
		return fmt.Errorf("sim: SampleEvery is %v; want more than 0 where there is an OnSample", c.SampleEvery)
	}
	if c.Graph != nil {
		if err := c.checkGraph(); err != nil {
			return err
		}
	} else if c.Known == nil {
		c.Known = c.Topology
	}
	if c.Graph != nil {
		// checkGraph has seen to Known.
	} else if n, want := c.Known.NumLinks(), c.Topology.NumLinks(); n != want || c.Known.NumHosts() != c.Topology.NumHosts() {
		return fmt.Errorf("sim: Known has %d hosts and %d links; want the %d and %d of Topology", c.Known.NumHosts(), n, c.Topology.NumHosts(), want)
	}
	for i, q := range c.Queues {
		switch {
		case !(q.RateMbit >= 0):
			return fmt.Errorf("sim: Queues[%d].RateMbit is %v; want a rate, or 0 for all others", i, q.RateMbit)
		case q.Bytes <= 0 || q.Bytes > maxQueue:
			return fmt.Errorf("sim: Queues[%d].Bytes is %d; want from 1 to %d", i, q.Bytes, maxQueue)
		case q.ECNBytes < 0:
			return fmt.Errorf("sim: Queues[%d].ECNBytes is %d; want 0 for none, or more", i, q.ECNBytes)
		}
	}
	if s.tcp, err = c.TCP.WithDefaults(); err != nil {
		return fmt.Errorf("sim: TCP: %w", err)
	}
	if c.SpreadSubflows && (spray.Reorders(c.Policy) || slices.Contains(spray.SwitchNames(), c.Policy)) {
		return fmt.Errorf("sim: SpreadSubflows: hosts do not choose a path for each flow by Policy %s; want ecmp", c.Policy)
	}
	if s.tcp.DCTCP || s.tcp.ECN {
		s.capable = capable
	}
	if c.Resequencer != nil {
		if err := c.Resequencer.Validate(); err != nil {
			return fmt.Errorf("sim: Resequencer: %w", err)
		}
	}
	for i, f := range c.Failures {
		if f.At < 0 || f.Told < 0 {
			return fmt.Errorf("sim: Failures[%d]: At is %v, Told %v; want neither below 0", i, f.At, f.Told)
		}
		for _, l := range f.Links {
			if l < 0 || int(l) >= c.Topology.NumLinks() {
				return fmt.Errorf("sim: Failures[%d].Links: no link %d; want from 0 to %d", i, l, c.Topology.NumLinks()-1)
			}
		}
	}
	return s.checkOpenLoop()
}

func (s *simulation) checkOpenLoop() error {
	o := s.config.OpenLoop
	if o == nil {
		return nil
	}
	hosts := s.config.numHosts()
	switch {
	case !(o.Load > 0 && o.Load <= 1):
		return fmt.Errorf("sim: OpenLoop.Load is %v; want more than 0 and at most 1", o.Load)
	case o.PacketBytes <= s.tcp.HeaderBytes || o.PacketBytes > 65535:
		return fmt.Errorf("sim: OpenLoop.PacketBytes is %d; want more than the header's %d and at most 65535", o.PacketBytes, s.tcp.HeaderBytes)
	case o.To == nil && s.config.Graph != nil:
		return errors.New("sim: OpenLoop.To is nil, and racks of a Graph differ in size; say to whom")
	case o.To == nil:
		if t := s.config.Topology; t.Link(0).B == t.Link(topology.LinkID(hosts-1)).B {
			return errors.New("sim: OpenLoop.To is nil, which is to other racks, and there is but one; say to whom")
		}
	case len(o.To) != hosts:
		return fmt.Errorf("sim: OpenLoop.To has %d hosts; want %d, one for each", len(o.To), hosts)
	}
	for h, to := range o.To {
		if to < 0 || int(to) >= hosts {
			return fmt.Errorf("sim: OpenLoop.To[%d] is %d; want from 0 to %d", h, to, hosts-1)
		}
	}
	return nil
}
