package papers

import (
	"context"
	"errors"
)

// Batch is subjects to be run, with the seeds of Options, in one pool: simulations of all
// of them share Options.Jobs places. What comes out depends neither on Jobs nor on Keep.
// Options.Progress is not called; Watch is.
type Batch struct {
	Subjects []Subject
	Options
	Keep Keeper // may be nil
	// Given returns the report of a subject that was run before. Such a subject does not run. It
	// returns nil for all others. Given may be nil.
	Given func(Subject) *Report
	Shard Shard
	// Weigh is about how long a unit takes, in any measure; nil: all as long.
	Weigh func(Unit) float64
	// Watch is told how far the batch is, by one caller at a time; it may be nil.
	Watch func(Progress)
}

// Keeper keeps parts. It has one caller at a time.
type Keeper interface {
	Get(Unit) (*Part, error) // nil and nil: it has none
	Put(Unit, *Part) error   // may be slow: simulations go on
}

// Shard is one of several shares of a batch's units; the zero value is all of them.
type Shard struct{ I, N int } // from 1 to N

// has deals units out in turns, so that each share has some of every experiment's seeds.
func (s Shard) has(unit int) bool { return s.N == 0 || unit%s.N == s.I-1 }

// Run runs what is not kept, keeps it, and tells of each subject in order, as soon as it
// and all before it have ended: its report, or the error of its first seed that fails. Of a
// subject of which the shard has only some units it tells errors alone. When ctx is done
// Run tells of all that have ended. It returns ctx's errors and Keep's. tell is called on
// the caller's goroutine.
func (b *Batch) Run(ctx context.Context, tell func(subject int, r *Report, err error)) error {
	run, err := b.plan(tell)
	if err != nil {
		return err
	}
	run.watch() // what is kept is known before anything runs
	run.advance()
	units := make([]Unit, len(run.mine))
	for i, u := range run.mine {
		units[i] = run.units[u]
	}
	var failed error
	saved := false // the unit that is told of next
	stopped := runUnits(ctx, units, b.Options, watch{
		keep: func(i int, p *Part) {
			if b.Keep != nil {
				err := b.Keep.Put(units[i], p)
				saved, failed = err == nil, errors.Join(failed, err)
			}
		},
		ended: func(i int, p *Part, err error) {
			run.end(run.mine[i], p, err, err == nil && saved)
			run.advance()
		},
		progress: func(i, done, total int) { run.at(run.mine[i], done, total) },
	})
	run.rest()
	return errors.Join(stopped, failed)
}

// batchRun is a Batch that runs. Subject s has the units from s*seeds() on.
type batchRun struct {
	*Batch
	tell  func(subject int, r *Report, err error)
	meter meter
	tally *tally

	units  []Unit
	mine   []int // those that are to be run
	parts  []*Part
	errs   []error
	left   []int // of each subject, how many of the shard's units have not ended
	told   []bool
	next   int       // subject that is to be told of
	missed []bool    // of each subject: other shards have units of it
	given  []*Report // of each subject, nil: it has to run
}

// plan looks what there is to run.
func (b *Batch) plan(tell func(subject int, r *Report, err error)) (*batchRun, error) {
	n := len(b.Subjects)
	r := &batchRun{
		Batch: b, tell: tell, meter: startMeter(), units: Units(b.Subjects, b.Options),
		left: make([]int, n), told: make([]bool, n), missed: make([]bool, n),
	}
	r.given = make([]*Report, n)
	for i, s := range b.Subjects {
		if b.Given != nil {
			r.given[i] = b.Given(s)
		}
	}
	r.parts, r.errs = make([]*Part, len(r.units)), make([]error, len(r.units))
	weights := make([]float64, len(r.units)) // 0: another shard's, or given
	var had []int
	for i, u := range r.units {
		s := i / b.seeds()
		if r.given[s] != nil {
			continue
		}
		if !b.Shard.has(i) {
			r.missed[s] = true
			continue
		}
		if weights[i] = 1; b.Weigh != nil {
			weights[i] = b.Weigh(u)
		}
		p, err := b.get(u)
		switch {
		case err != nil:
			return nil, err
		case p != nil:
			r.parts[i] = p
			had = append(had, i)
		default:
			r.left[s]++
			r.mine = append(r.mine, i)
		}
	}
	r.tally = newTally(weights, had)
	return r, nil
}

func (b *Batch) get(u Unit) (*Part, error) {
	if b.Keep == nil {
		return nil, nil
	}
	return b.Keep.Get(u)
}

func (r *batchRun) at(unit, done, total int) {
	r.tally.at(unit, done, total)
	r.watch()
}

func (r *batchRun) end(unit int, p *Part, err error, saved bool) {
	r.parts[unit], r.errs[unit] = p, err
	r.left[unit/r.seeds()]--
	r.tally.end(unit, saved)
	r.watch()
}

func (r *batchRun) watch() {
	if r.Watch != nil {
		r.Watch(r.tally.progress())
	}
}

// advance tells of subjects that are next and have ended.
func (r *batchRun) advance() {
	for ; r.next < len(r.Subjects) && r.left[r.next] == 0; r.next++ {
		r.one(r.next)
	}
}

// rest tells of subjects that have ended though one before has not.
func (r *batchRun) rest() {
	for s := range r.Subjects {
		if r.left[s] == 0 {
			r.one(s)
		}
	}
}

// one tells of a subject that has ended, once.
func (r *batchRun) one(s int) {
	if r.told[s] {
		return
	}
	r.told[s] = true
	if r.given[s] != nil {
		r.tell(s, r.given[s], nil)
		return
	}
	from, to := s*r.seeds(), (s+1)*r.seeds()
	for i := from; i < to; i++ {
		if r.errs[i] != nil {
			r.tell(s, nil, r.units[i].named(r.errs[i], r.seeds()))
			return
		}
	}
	if r.missed[s] {
		return
	}
	report, err := r.Subjects[s].report(r.Options, r.parts[from:to])
	if err == nil {
		r.measure(report)
	}
	r.tell(s, report, err)
	clear(r.parts[from:to])
}

// measure says what the machine gave: all that the process took, if it was for this report
// alone.
func (r *batchRun) measure(report *Report) {
	switch {
	case len(r.mine) == 0: // nothing has run here
	case len(r.mine) == r.seeds() && len(r.Subjects) == 1:
		r.meter.into(report)
	default:
		r.meter.peak(report)
		report.PeakOfProcess = true
	}
}
