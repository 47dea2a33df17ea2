package simfile

import (
	"fmt"
	"time"

	"weft/bench/sim"
	"weft/bench/sim/spray"
	"weft/resequencer"
)

// setting is a key of a file and what it sets of a run. A run that the simulator refuses is
// refused for the first setting with which it does.
type setting struct {
	key string
	set func(*sim.Config)
}

// settings are those of a File besides fabric, policy and traffic. Zero values of keys mean the
// simulator's defaults.
func (f *File) settings() (all []setting) {
	add := func(key string, given bool, set func(*sim.Config)) {
		if given {
			all = append(all, setting{key, set})
		}
	}
	add("delay", true, func(c *sim.Config) { c.Delay = f.Delay })
	add("queues", len(f.Queues) > 0, func(c *sim.Config) {
		c.Queues = nil
		for _, q := range f.Queues {
			c.Queues = append(c.Queues, sim.Queue{RateMbit: q.RateMbit, Bytes: q.Bytes, ECNBytes: q.MarkBytes})
		}
	})
	add("host_queue_bytes", true, func(c *sim.Config) { c.HostQueueBytes = f.HostQueue })
	t := &f.TCP
	add("tcp.mss", t.MSS != 0, func(c *sim.Config) { c.TCP.MSS = t.MSS })
	add("tcp.header_bytes", t.HeaderBytes != 0, func(c *sim.Config) { c.TCP.HeaderBytes = t.HeaderBytes })
	add("tcp.window_bytes", t.WindowBytes != 0, func(c *sim.Config) { c.TCP.WindowBytes = t.WindowBytes })
	add("tcp.initial_window", t.InitialWindow != 0, func(c *sim.Config) { c.TCP.InitialWindow = t.InitialWindow })
	add("tcp.rto_min", t.RTOMin != 0, func(c *sim.Config) { c.TCP.RTOMin = t.RTOMin })
	add("tcp.rto_initial", t.RTOInitial != 0, func(c *sim.Config) { c.TCP.RTOInitial = t.RTOInitial })
	add("tcp.dup_thresh", t.DupThresh != 0, func(c *sim.Config) { c.TCP.DupThresh = t.DupThresh })
	add("tcp.dctcp", t.DCTCP, func(c *sim.Config) { c.TCP.DCTCP = true })
	add("tcp.ecn", t.ECN, func(c *sim.Config) { c.TCP.ECN = true })
	add("tcp.handshake", t.Handshake, func(c *sim.Config) { c.TCP.Handshake = true })
	add("tcp.timestamps", t.Timestamps, func(c *sim.Config) { c.TCP.Timestamps = true })
	o := &f.Options
	add("options.flowcell_bytes", o.FlowcellBytes != 0, func(c *sim.Config) { c.Options.FlowcellBytes = o.FlowcellBytes })
	add("options.flowlet_gap", o.FlowletGap != 0, func(c *sim.Config) { c.Options.FlowletGap = o.FlowletGap })
	add("options.samples", o.Samples != 0, func(c *sim.Config) { c.Options.Samples = o.Samples })
	add("options.expiry", o.Expiry != 0, func(c *sim.Config) { c.Options.Expiry = o.Expiry })
	add("options.samples_only", o.SamplesOnly, func(c *sim.Config) { c.Options.SamplesOnly, c.Spray.SamplesOnly = true, true })
	add("options.rack_samples", o.RackSamples, func(c *sim.Config) { c.Spray.RackSamples = true })
	add("options.groups", o.Groups, func(c *sim.Config) { c.Options.Groups = true })
	add("options.tau", o.Tau != 0, func(c *sim.Config) { c.Spray.Tau = o.Tau })
	add("options.drill_samples", o.DrillSamples != 0, func(c *sim.Config) { c.Spray.DrillSamples = o.DrillSamples })
	add("options.drill_memory", o.DrillMemory != 0, func(c *sim.Config) { c.Spray.DrillMemory = o.DrillMemory })
	add("options.drill_engines", o.DrillEngines != 0, func(c *sim.Config) { c.Spray.DrillEngines = o.DrillEngines })
	add("resequencer", true, func(c *sim.Config) {
		if f.Resequencer.Enabled.Or(spray.Reorders(c.Policy)) {
			r := f.resequencer
			c.Resequencer = &r
		}
	})
	for i := range f.failures {
		add(fmt.Sprintf("failures[%d]", i), true, func(c *sim.Config) { c.Failures = append(c.Failures, f.failures[i]) })
	}
	return all
}

// base is a run of a policy without settings or flows.
func (f *File) base(policy string) sim.Config {
	return sim.Config{
		Topology: f.plan.fabric.computed, Graph: f.plan.fabric.graph, Policy: policy, Seed: uint64(f.Seed),
		Duration: f.Duration + f.Drain, Warmup: f.Warmup, Queues: []sim.Queue{{Bytes: defaultQueue}},
	}
}

const defaultQueue = 128 << 10

// config is a run of a policy without flows.
func (f *File) config(policy string) sim.Config {
	c := f.base(policy)
	for _, s := range f.settings() {
		s.set(&c)
	}
	return c
}

// try asks the simulator whether it takes a run, by one that ends at once.
func try(c sim.Config) error {
	c.Duration, c.Warmup, c.Workload = time.Nanosecond, 0, &given{}
	_, err := sim.Run(c)
	return err
}

// refused returns the key for which the simulator refuses a policy's runs, and why.
func (f *File) refused(policy int) (key string, err error) {
	name := f.Policies[policy]
	key = fmt.Sprintf("policies[%d]", policy)
	if err = try(f.config(name)); err == nil {
		return "", nil
	}
	c := f.base(name)
	if first := try(c); first != nil {
		return key, first
	}
	for _, s := range f.settings() {
		s.set(&c)
		if first := try(c); first != nil {
			return s.key, first
		}
	}
	return key, err
}

// config checks what a file says of the resequencer.
func (o order) config() (c resequencer.Config, err error) {
	c.MinHold, c.Hold = o.MinHold, o.Hold
	if c.Discipline, err = resequencer.ParseDiscipline(o.Discipline); err != nil {
		return c, err
	}
	return c, c.Validate()
}
