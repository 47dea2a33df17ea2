package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/bench/asymmetry"
	"weft/bench/permutation"
	"weft/bench/testbed"
	"weft/encap"
	"weft/flowcell"
	"weft/lab"
	"weft/policy"
	"weft/topology"
)

// demoBed is where the demo's runs take place.
type demoBed interface {
	Kind() string
	Supports(testbed.Row) error
	Close() error
	run(context.Context, testbed.Row, []permutation.Stream, permutation.Load) (permutation.Result, error)
}

// testbed is the demo's, of its fabric.
func (d *demo) testbed() testbed.Config {
	c := d.options.testbed(nil)
	d.topology.set(&c)
	return c
}

// testbed is what the flags say of a fabric and its hosts.
func (o *demoOptions) testbed(t *topology.Topology) testbed.Config {
	c := testbed.Config{
		Topology: t, RateMbit: o.rate, Seed: o.seed,
		Policy:      policy.Options{FlowcellBytes: o.flowcell, FlowletGap: max(flowcell.FlowletGap, asymmetry.FlowletPackets*o.packetTime()), LinkRateBits: o.rate * 1e6},
		Resequencer: o.reseq(),
	}
	c.Carrier, _ = encap.ParseCarrier(o.encap) // checked
	if o.meter {
		c.Meter = &lab.Meter{}
	}
	return c
}

// realBed is a testbed in real time.
type realBed struct{ testbed.Testbed }

func (b realBed) run(ctx context.Context, row testbed.Row, streams []permutation.Stream, load permutation.Load) (r permutation.Result, err error) {
	s, err := b.Start(ctx, row)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return permutation.RunStreams(ctx, s, streams, load)
}

// virtualBed is a fabric in memory, in virtual time. It adds up how long its runs take.
type virtualBed struct {
	config       testbed.Config
	virtual, own time.Duration // time in the fabric, and of this machine
}

func (*virtualBed) Kind() string { return "in memory, in virtual time" }

func (*virtualBed) Supports(r testbed.Row) error {
	if r.Kernel {
		return errors.New("the kernel's TCP runs in network namespaces only")
	}
	return nil
}

func (*virtualBed) Close() error { return nil }

func (b *virtualBed) run(ctx context.Context, row testbed.Row, streams []permutation.Stream, load permutation.Load) (permutation.Result, error) {
	start := time.Now()
	r, err := permutation.RunVirtualStreams(ctx, b.config, row, streams, load)
	b.own += time.Since(start)
	b.virtual += load.Warmup + load.Duration
	return r, err
}

// tellPace prints how fast virtual time went. It is no note, because notes are in the
// report, which is the same in every run.
func (d *demo) tellPace() {
	if b, ok := d.bed.(*virtualBed); ok && b.own > 0 {
		fmt.Fprintln(d.stderr, pace(b.virtual, b.own))
	}
}

// pace says how fast virtual time went, which took so much real time.
func pace(virtual, own time.Duration) string {
	times, digits := virtual.Seconds()/own.Seconds(), 1
	if times < 1 {
		digits = 3
	}
	return fmt.Sprintf("%s of virtual time took %s, %.*f times as fast as real time.", inSeconds(virtual), inSeconds(own), digits, times)
}

// inSeconds is a time as people read it: to a tenth of a second, below a second to a
// millisecond.
func inSeconds(d time.Duration) string {
	unit := 100 * time.Millisecond
	if d < time.Second {
		unit = time.Millisecond
	}
	return fmt.Sprintf("%g s", d.Round(unit).Seconds())
}
