// Package simfile runs simulations that a YAML file describes: a fabric, flows, failures, and
// policies that are compared. weft sim run FILE is its command.
//
// A File is decoded strictly, and its errors name the line, the key and what to write instead
// (weft/internal/config). All policies see the same flows with the same seed. The same file
// gives the same results, however many simulations run at once.
package simfile

import (
	"slices"
	"time"

	"weft/bench/sim/spray"
	"weft/internal/config"
	"weft/policy"
)

// file is what a YAML file has.
type file struct {
	Topology    string        `yaml:"topology"` // a specification, or a file beside this one
	Policies    []string      `yaml:"policies"` // of hosts, or models of switches
	Traffic     traffic       `yaml:"traffic"`
	Duration    time.Duration `yaml:"duration"` // in which flows begin
	Warmup      time.Duration `yaml:"warmup"`   // flows that begin in it do not count
	Drain       time.Duration `yaml:"drain"`    // after Duration, in which flows may end
	Seed        int           `yaml:"seed"`     // the first
	Seeds       int           `yaml:"seeds"`
	Delay       time.Duration `yaml:"delay"` // of a link and the node behind it
	Queues      []queue       `yaml:"queues"`
	HostQueue   int           `yaml:"host_queue_bytes"`
	TCP         transport     `yaml:"tcp"`
	Resequencer order         `yaml:"resequencer"`
	Options     options       `yaml:"options"`
	Failures    []failure     `yaml:"failures"`
}

// traffic says who sends what to whom, and when.
type traffic struct {
	Matrix   string        `yaml:"matrix"`
	Stride   int           `yaml:"stride"`  // of matrix stride
	Rack     float64       `yaml:"rack"`    // of matrix staggered: probability of the own rack
	Pod      float64       `yaml:"pod"`     // and of the own pod
	Servers  int           `yaml:"servers"` // of matrix incast
	Jobs     int           `yaml:"jobs"`    // of matrix incast where they begin together
	Sizes    sizes         `yaml:"sizes"`
	Arrivals string        `yaml:"arrivals"`
	Loads    []float64     `yaml:"loads"`   // of arrivals poisson
	Rounds   int           `yaml:"rounds"`  // of arrivals together: flows of a host, one after the other
	AtOnce   int           `yaml:"at_once"` // likewise: of these under way
	Spread   time.Duration `yaml:"spread"`  // likewise: in which hosts begin
	List     []listed      `yaml:"list"`    // of matrix list
}

// sizes says how large flows are. One of the first three is given.
type sizes struct {
	CDF      string  `yaml:"cdf"`         // a name that workload.LoadCDF knows
	File     string  `yaml:"file"`        // of a CDF, beside this one
	Fixed    int     `yaml:"fixed_bytes"` // of a flow; of a job of matrix incast
	Scale    float64 `yaml:"scale"`
	Truncate int     `yaml:"truncate_bytes"` // larger flows have this size
}

// listed is a flow of matrix list.
type listed struct {
	At    time.Duration `yaml:"at"`
	From  string        `yaml:"from"` // hosts by name
	To    string        `yaml:"to"`
	Bytes int           `yaml:"bytes"`
}

type queue struct {
	RateMbit  float64 `yaml:"rate_mbit"` // of ports of links with this rate; 0: of all others
	Bytes     int     `yaml:"bytes"`
	MarkBytes int     `yaml:"mark_bytes"`
}

type transport struct {
	MSS           int           `yaml:"mss"`
	HeaderBytes   int           `yaml:"header_bytes"`
	WindowBytes   int           `yaml:"window_bytes"`
	InitialWindow int           `yaml:"initial_window"`
	RTOMin        time.Duration `yaml:"rto_min"`
	RTOInitial    time.Duration `yaml:"rto_initial"`
	DupThresh     int           `yaml:"dup_thresh"`
	DCTCP         bool          `yaml:"dctcp"`
	ECN           bool          `yaml:"ecn"`
	Handshake     bool          `yaml:"handshake"`
	Timestamps    bool          `yaml:"timestamps"`
}

type order struct {
	Enabled    config.Choice `yaml:"enabled"` // auto: where the policy reorders
	Discipline string        `yaml:"discipline"`
	MinHold    time.Duration `yaml:"min_hold"`
	Hold       time.Duration `yaml:"hold"`
}

// options are of policies, 0: the policy's own.
type options struct {
	FlowcellBytes int           `yaml:"flowcell_bytes"`
	FlowletGap    time.Duration `yaml:"flowlet_gap"`
	Samples       int           `yaml:"samples"`
	Expiry        time.Duration `yaml:"expiry"`
	SamplesOnly   bool          `yaml:"samples_only"`
	RackSamples   bool          `yaml:"rack_samples"`
	Groups        bool          `yaml:"groups"`
	Tau           time.Duration `yaml:"tau"`
	DrillSamples  int           `yaml:"drill_samples"`
	DrillMemory   int           `yaml:"drill_memory"`
	DrillEngines  int           `yaml:"drill_engines"`
}

// failure is of links, or their return.
type failure struct {
	At    time.Duration `yaml:"at"`
	Links []string      `yaml:"links"`
	Up    bool          `yaml:"up"`
	Told  time.Duration `yaml:"told"` // how long after At hosts and switches learn of it
}

// defaults are what a file need not say. Those of TCP, queues, and policies are the
// simulator's, whose zero value means them.
func defaults() file {
	return file{
		Seed: 1, Seeds: 1, Drain: time.Second, Delay: 5 * time.Microsecond,
		Traffic:     traffic{Sizes: sizes{Scale: 1}, Rounds: 1, AtOnce: 1, Jobs: 1},
		Resequencer: order{Discipline: "sequence", MinHold: 10 * time.Millisecond},
	}
}

// knownPolicies are those that a file may name.
func knownPolicies() []string { return slices.Concat(policy.Names(), spray.SwitchNames()) }
