package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/bench/mpi"
	"weft/bench/permutation"
	"weft/bench/testbed"
	"weft/lab"
	"weft/topology"
)

// Options say what Run measures.
type Options struct {
	Topology *topology.Topology
	Known    string // the same with the rates of its links, as weft host is told
	RateMbit float64
	Apps     []App
	Rows     []Row
	Bytes    int // about what a client moves, from MinBytes to 2^30
	Rounds   int
	Seed     uint64
	Lab      string   // name of the first lab; the others have a number behind it
	Weft     []string // weft as a program, with Env
	Env      []string
	// Progress, if not nil, is called before each measurement with how many are done.
	Progress func(what string, done, total int)
	// Note, if not nil, is told what a reader of the results must know.
	Note func(string)
}

// bench is a call of Run.
type bench struct {
	Options
	site    *site
	hosts   []topology.Node
	program *mpi.Program         // nil without an app of MPI
	labs    map[string]*lab.Lab  // by Row.balance, built when first needed
	unbuilt map[string]error     // the same, why there is none
	runs    map[[2]string][]*run // by app and row, of each round
	missing map[string]string    // by app, what is to be installed
	broken  map[string]error     // by app, why it cannot be prepared
	done    int
}

// Run measures all apps in all rows: in each round the rows in turn, in every other round
// backwards, and in each row all apps. An app whose programs are missing, or that fails, and a row
// that cannot run, have results with their problem. An error is what concerns all.
func Run(ctx context.Context, o Options) (results []Result, err error) {
	b := &bench{Options: o, labs: make(map[string]*lab.Lab), unbuilt: make(map[string]error), runs: make(map[[2]string][]*run), missing: make(map[string]string), broken: make(map[string]error)}
	if b.Progress == nil {
		b.Progress = func(string, int, int) {}
	}
	if b.Note == nil {
		b.Note = func(string) {}
	}
	for n := range o.Topology.Hosts() {
		b.hosts = append(b.hosts, n)
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	for round := range o.Rounds {
		rows := slices.Clone(o.Rows)
		if round%2 == 1 {
			slices.Reverse(rows)
		}
		for _, row := range rows {
			err := b.measureRow(ctx, row, round)
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%s: %w", row.Name, ctx.Err())
			}
			if err != nil {
				b.failRow(row, round, err)
			}
		}
	}
	return b.results(), nil
}

// failRow lets all apps fail in a round of a row, but those that it has measured.
func (b *bench) failRow(row Row, round int, err error) {
	b.Note(fmt.Sprintf("%s, round %d: %v", row.Name, round+1, err))
	for _, a := range b.Apps {
		if key := [2]string{a.Name, row.Name}; b.canRun(a) && len(b.runs[key]) <= round {
			b.runs[key] = append(b.runs[key], &run{idle: -1, failed: err})
		}
	}
}

// canRun reports whether an app can run here.
func (b *bench) canRun(a App) bool { return b.missing[a.Name] == "" && b.broken[a.Name] == nil }

// close ends what the bench holds. Taking down a lab ends what runs in its namespaces.
func (b *bench) close() (err error) {
	for _, l := range b.labs {
		err = errors.Join(err, l.Close())
	}
	if b.program != nil {
		err = errors.Join(err, b.program.Remove())
	}
	if b.site != nil {
		err = errors.Join(err, b.site.remove())
	}
	return err
}

// prepare makes the programs' data.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.site, err = newSite(b.Bytes); err != nil {
		return err
	}
	for _, a := range b.Apps {
		if b.missing[a.Name] = a.missing(find); b.missing[a.Name] != "" {
			continue
		}
		if b.broken[a.Name] = b.prepareApp(ctx, a); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (b *bench) prepareApp(ctx context.Context, a App) (err error) {
	if a.mpi != "" {
		if b.program == nil {
			b.program, err = mpi.Build(ctx)
		}
		return err
	}
	if err := b.site.makeDirs(b.hosts, nil, dirs[a.Name]...); err != nil {
		return err
	}
	return works[a.Name].prepare(ctx, b.site, b.hosts)
}

// lab returns the lab whose switches balance by a rule.
func (b *bench) lab(ctx context.Context, balance string) (*lab.Lab, error) {
	if l, err := b.labs[balance], b.unbuilt[balance]; l != nil || err != nil {
		return l, err
	}
	name := b.Lab
	if len(b.labs) > 0 {
		name = fmt.Sprint(b.Lab, len(b.labs))
	}
	l, err := lab.Hold(ctx, lab.Config{Name: name, RateMbit: b.RateMbit, Topology: b.Topology, Balance: balance,
		Progress: func(done, total int) { b.Progress("building the lab", done, total) }})
	if err != nil {
		b.unbuilt[balance] = err
		return nil, err
	}
	b.labs[balance] = l
	for _, n := range l.Notes {
		b.Note(n)
	}
	b.unbuilt[balance] = setHosts(l, b.hosts)
	return l, b.unbuilt[balance]
}

// measureRow runs all apps in a row.
func (b *bench) measureRow(ctx context.Context, row Row, round int) (err error) {
	l, err := b.lab(ctx, row.balance)
	if err != nil {
		return err
	}
	var hosts []testbed.DaemonHost
	for _, n := range b.hosts {
		h := testbed.DaemonHost{ID: n.ID, Name: n.Name, Address: n.Addr}
		if row.host != "" {
			h.Config = fmt.Sprintf("%suser: root\nfailures: {budget: 125}\ntopology: %s\n", row.host, b.Known)
		}
		hosts = append(hosts, h)
	}
	d, err := testbed.StartDaemons(ctx, l, hosts, b.Weft, b.Env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, err := d.Session()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, a := range b.Apps {
		if !b.canRun(a) {
			continue
		}
		b.Progress(row.Name+", "+a.Name, b.done, len(b.Apps)*len(b.Rows)*b.Rounds)
		b.done++
		before, err := s.Counters()
		if err != nil {
			return err
		}
		r, err := b.measure(ctx, l, a, round)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		key := [2]string{a.Name, row.Name}
		if err != nil {
			b.Note(fmt.Sprintf("%s, %s, round %d: %v", a.Name, row.Name, round+1, err))
			b.runs[key] = append(b.runs[key], &run{idle: r.idle, failed: err})
			continue
		}
		after, err := s.Counters()
		if err != nil {
			return err
		}
		r.retransmits = after.Retransmits - before.Retransmits
		b.runs[key] = append(b.runs[key], &r)
	}
	return nil
}

// limit is how long an app may take: ten times as long as all bytes over one link of its rack
// would, and half a minute to start.
func (b *bench) limit() time.Duration {
	ideal := float64(b.Bytes) * 8 / (b.RateMbit * 1e6)
	return patience + time.Duration(40*ideal*float64(time.Second))
}

// measure runs an app.
func (b *bench) measure(ctx context.Context, l *lab.Lab, a App, round int) (r run, err error) {
	if a.mpi != "" {
		return b.measureMPI(ctx, l, a)
	}
	r.idle = -1
	w := works[a.Name]
	all, err := serve(ctx, l.Do, b.site, w, b.hosts)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, all.close()) }()
	return play(ctx, l.Do, b.site, w, b.hosts, permutation.Random(b.Topology, b.Seed+uint64(round)), b.limit())
}

// measureMPI runs a pattern. The rank at the same place of the next rack is as many ranks on as
// a rack has hosts.
func (b *bench) measureMPI(ctx context.Context, l *lab.Lab, a App) (r run, err error) {
	o := mpi.Options{Pattern: a.mpi, Bytes: b.Bytes / mpiRounds, By: b.perRack(), Rounds: mpiRounds, Limit: 2*patience + 4*b.limit()}
	r.idle = -1
	before := testbed.ReadCPU()
	got, err := b.program.Run(ctx, l, b.Topology, o)
	if err != nil {
		return r, err
	}
	r.idle = testbed.IdlePercentBeside(before, testbed.ReadCPU(), got.CPU)
	sum := time.Duration(0)
	for _, t := range got.Rounds {
		sum += t
	}
	r.clients = []float64{sum.Seconds()}
	return r, nil
}

// perRack is how many hosts come before the first of the second rack.
func (b *bench) perRack() int {
	first := b.Topology.EdgeOf(b.hosts[0].ID)
	return max(1, slices.IndexFunc(b.hosts, func(h topology.Node) bool { return b.Topology.EdgeOf(h.ID) != first }))
}

// results are by app, each with all rows.
func (b *bench) results() (list []Result) {
	for _, a := range b.Apps {
		for _, row := range b.Rows {
			key := [2]string{a.Name, row.Name}
			r := Result{App: a.Name, Row: row.Name, Topology: b.Topology.String(), RateMbit: b.RateMbit, Bytes: b.Bytes, Clients: len(b.hosts), Problem: b.missing[a.Name], Missing: b.missing[a.Name] != ""}
			if err := b.broken[a.Name]; err != nil {
				r.Problem = "cannot be prepared: " + err.Error()
			}
			r.summarise(b.runs[key], b.runs[[2]string{a.Name, Baseline}], testbed.CPUBound)
			list = append(list, r)
		}
	}
	return list
}
