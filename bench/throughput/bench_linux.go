package throughput

import (
	"cmp"
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"weft/internal/hostsetup"
	"weft/internal/kernel/disturb"
	"weft/lab"
	"weft/topology"
)

// The hosts are in two racks of one pod, which with the pod's aggregation
// switches are a leaf-spine of two leaves and as many spines as there are paths. The
// rest of the fat-tree is not built.
const (
	fromName = "h0.0.2"
	toName   = "h0.1.2"
)

// DefaultPaths is how many spines there are where nobody says otherwise.
const DefaultPaths = 4

// Options say what to measure, and for how long.
type Options struct {
	Cases    []Case
	Rounds   int           // all cases in turn, this many times
	Warmup   time.Duration // of every run, not measured
	Duration time.Duration // of every run, measured
	// Connections are how many carry the bytes at a time: every case is measured with each
	// of these numbers. nil means one.
	Connections []int
	// Latency measures request and response, while nothing else is sent and beside the
	// bytes. Anew measures how many connections a second are opened, each for one request.
	Latency, Anew bool
	Lab           string // name of the lab of network namespaces
	// SpineRate, if not 0, is the rate of the links between leaves and spines in Mbit/s,
	// Ethernet headers included. Hosts are told it, as an operator writes it into a topology.
	SpineRate float64
	Paths     int // spines, from 2 to 16; 0: DefaultPaths
	// Loss is the part of the packets, or super-segments that no link has cut, that each spine
	// loses on the way to the receiver; 0: none.
	Loss float64
	// Skew is how much later packets arrive by the first spine; 0: none. They pass through this
	// process, which costs processor time.
	Skew time.Duration
	// Worker is the command line of a program that calls Worker. Run appends one
	// argument, the job.
	Worker []string
	// Wireguard and Tailscale are directories of programs that are modules of their own. Without
	// a program's source its cases are left out.
	Wireguard, Tailscale string
	// Profiles is the directory for profiles of the processor time, a file for each
	// Worker and run; "" for none.
	Profiles string
	// Progress, if not nil, is called with the number of finished runs.
	Progress func(done, total int)
	// Note, if not nil, is called with what was left out, and why.
	Note func(string)
}

// Run builds the fabric and measures all cases. It leaves nothing behind, however
// it ends. A case that cannot run here is left out. A case that fails is left out
// from then on; Run returns its error with the results of the others.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	b := &bench{options: o, rounds: make(map[string][]sample), failed: make(map[string]error)}
	if len(o.Connections) == 0 {
		b.options.Connections = []int{1}
	}
	if b.scratch, err = os.MkdirTemp("", "weft-throughput-*"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.scratch)
	if err := b.selectCases(ctx); err != nil {
		return nil, err
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	err = b.measureAll(ctx)
	return b.results(), errors.Join(err, b.undisturb(), b.lab.Close())
}

type bench struct {
	options   Options
	cases     []Case // that can run here
	topology  *topology.Topology
	lab       *lab.Lab
	from, to  topology.NodeID
	spines    []spine
	disturbed []*disturb.Disturber // of spines

	scratch       string              // directory for what is compiled
	forwarder     string              // wireguard-go's, compiled; "" if it is not
	wireguardKeys [2]*ecdh.PrivateKey // of its two ends: from, to
	tailnetHost   string              // the program of a host of the tailnet, compiled; "" if it is not
	tailscaled    string              // what it starts

	rounds map[string][]sample // by Case.key
	failed map[string]error
}

// selectCases keeps those that can run here.
func (b *bench) selectCases(ctx context.Context) error {
	for _, c := range b.options.Cases {
		if c.supports != nil {
			if err := c.supports(ctx, b); err != nil {
				b.note(fmt.Sprintf("%s is left out: %v", c.Name, err))
				continue
			}
		}
		for _, n := range b.options.Connections {
			c.connections = n
			b.cases = append(b.cases, c)
		}
	}
	if len(b.cases) == 0 {
		return errors.New("none of the cases can run here")
	}
	return nil
}

func (b *bench) note(s string) {
	if b.options.Note != nil {
		b.options.Note(s)
	}
}

// fabric is the fabric as the hosts are told it, with the rate that its links have.
func (o Options) fabric() string {
	spec := fmt.Sprintf("fat-tree:k=%d", 2*cmp.Or(o.Paths, DefaultPaths))
	if o.SpineRate == 0 {
		return spec
	}
	return spec + ",fabric-rate=" + strconv.FormatFloat(o.SpineRate, 'f', -1, 64)
}

func (b *bench) build(ctx context.Context) (err error) {
	if b.topology, err = topology.Parse(b.options.fabric()); err != nil {
		return err
	}
	from, err := b.topology.Lookup(fromName)
	if err != nil {
		return err
	}
	to, err := b.topology.Lookup(toName)
	if err != nil {
		return err
	}
	b.from, b.to = from.ID, to.ID
	nodes, spines, err := between(b.topology, b.from, b.to)
	if err != nil {
		return err
	}
	b.spines = spines
	b.lab, err = lab.Hold(ctx, lab.Config{Name: b.options.Lab, Topology: b.topology, Only: nodes, Unlimited: true})
	if err != nil {
		return err
	}
	if err := b.prepare(); err != nil {
		return errors.Join(err, b.undisturb(), b.lab.Close())
	}
	return nil
}

// prepare changes the lab to what the options and cases need.
func (b *bench) prepare() error {
	for _, c := range b.cases {
		if c.prepare != nil {
			if err := c.prepare(b); err != nil {
				return fmt.Errorf("case %s: %w", c.Name, err)
			}
		}
	}
	return errors.Join(b.limitSpines(), b.disturbSpines())
}

// measureAll runs the cases in turn, so that what disturbs the machine for a
// while disturbs all of them.
func (b *bench) measureAll(ctx context.Context) error {
	done, total := 0, b.options.Rounds*len(b.cases)
	for range b.options.Rounds {
		for _, c := range b.cases {
			if b.failed[c.key()] == nil {
				s, err := b.measure(ctx, c)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				b.rounds[c.key()] = append(b.rounds[c.key()], s)
				if b.failed[c.key()] = err; err != nil {
					b.cleanUp()
				}
			}
			done++
			if b.options.Progress != nil {
				b.options.Progress(done, total)
			}
		}
	}
	var all []error
	for _, c := range b.cases {
		if err := b.failed[c.key()]; err != nil {
			all = append(all, fmt.Errorf("case %s: %w", c.Name, err))
		}
	}
	return errors.Join(all...)
}

// cleanUp takes from the hosts what a case may have left there that failed: its
// processes may have been killed.
func (b *bench) cleanUp() {
	for _, id := range []topology.NodeID{b.from, b.to} {
		err := b.lab.Do(id, func() error {
			_, err := hostsetup.Cleanup()
			return err
		})
		if err != nil {
			b.note(fmt.Sprintf("what follows may be wrong: %s: %v", b.topology.Node(id).Name, err))
		}
	}
}

// results has those cases of which every round succeeded.
func (b *bench) results() (all []Result) {
	whole := func(key string) []sample {
		if b.failed[key] != nil || len(b.rounds[key]) < b.options.Rounds {
			return nil
		}
		return b.rounds[key]
	}
	for _, c := range b.cases {
		if rounds := whole(c.key()); rounds != nil {
			r := summarise(c.Name, c.TCP+" "+congestionControl, rounds, whole(Case{Name: reference, connections: c.connections}.key()))
			r.Connections = c.connections
			r.PercentOfIdeal = 100 * ratio(r.Gbps, b.idealGbps())
			all = append(all, r)
		}
	}
	return all
}

// A packet of plain TCP over an MTU of 1500 bytes carries 1448 bytes (20 IP, 20
// TCP, 12 timestamps) and takes 1514 of a link's time, with its Ethernet header.
const plainPayload, fullFrame = 1448, 1514

// idealGbps is what the spines could carry of plain TCP, 0 if they have no rate.
func (b *bench) idealGbps() float64 {
	return float64(len(b.spines)) * b.options.SpineRate / 1e3 * plainPayload / fullFrame
}
