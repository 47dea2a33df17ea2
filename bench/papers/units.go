package papers

import (
	"context"
	"sync"
)

// watch is told of units, by one caller at a time, and of none after runUnits has returned.
type watch struct {
	// keep is told of what a unit gave before ended is, while others may be told. It may be
	// slow: no simulation waits for it.
	keep     func(unit int, p *Part)
	ended    func(unit int, p *Part, err error)
	progress func(unit, done, total int)
}

// runUnits runs units, of which as many simulations run at once as o.Jobs says, whichever
// unit they are of. When ctx is done it returns at once, and has told of all units that
// have ended. What is under way ends by itself.
func runUnits(ctx context.Context, units []Unit, o Options, w watch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var mu sync.Mutex
	over := false
	tell := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			f()
		}
	}
	defer tell(func() { over = true })

	type end struct {
		unit int
		p    *Part
		err  error
	}
	ends := make(chan end, len(units))
	ended := func(e end) {
		if e.err == nil {
			w.keep(e.unit, e.p)
		}
		tell(func() { w.ended(e.unit, e.p, e.err) })
	}
	places := newPool(o.Jobs, func() bool { return ctx.Err() != nil })
	go func() {
		for i, u := range units {
			if !places.enter(places.ask(i)) {
				return
			}
			o := o
			o.Progress = func(done, total int) { tell(func() { w.progress(i, done, total) }) }
			go func() {
				t := &turn{pool: places, order: i}
				t.begin()
				p, err := u.run(ctx, o, t)
				ends <- end{i, p, err} // before the next one has the place, and may be the last
				t.end()
			}()
		}
	}()
	for range units {
		select {
		case e := <-ends:
			if e.err == nil || ctx.Err() == nil {
				ended(e)
			}
		case <-ctx.Done():
			places.stop()
			for {
				select {
				case e := <-ends:
					if e.err == nil {
						ended(e)
					}
				default:
					return ctx.Err()
				}
			}
		}
	}
	return ctx.Err()
}
