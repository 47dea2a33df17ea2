package papers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Who waits gets a place by order, and of one order by arrival.
func TestPool_byOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1, func() bool { return false })
		if !p.enter(p.ask(0)) {
			t.Fatal("no place though none is taken")
		}
		var mu sync.Mutex
		var got []string
		for i, order := range []int{5, 2, 9, 2, 5} {
			go func() {
				if p.enter(p.ask(order)) {
					mu.Lock()
					got = append(got, fmt.Sprintf("%d by %d", order, i))
					mu.Unlock()
					p.leave()
				}
			}()
			synctest.Wait()
		}
		p.leave()
		synctest.Wait()
		if want := []string{"2 by 1", "2 by 3", "5 by 0", "5 by 4", "9 by 2"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if p.free != 1 {
			t.Errorf("%d places are free, want 1", p.free)
		}
	})
}

func TestPool_stopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1, func() bool { return false })
		p.enter(p.ask(0))
		var waited bool
		go func() { waited = p.enter(p.ask(1)) }()
		synctest.Wait()
		p.stop()
		synctest.Wait()
		p.leave()
		if waited || p.enter(p.ask(0)) {
			t.Error("a place of a pool that has stopped")
		}
		over := false
		p = newPool(1, func() bool { return over })
		p.enter(p.ask(0))
		go func() { waited = p.enter(p.ask(1)) }()
		synctest.Wait()
		over = true
		p.leave()
		synctest.Wait()
		if waited || p.enter(p.ask(0)) || p.free != 1 {
			t.Error("a place of a pool that is over")
		}
	})
}

// load counts what runs at once.
type load struct {
	mu        sync.Mutex
	now, most int
	began     []string
}

// sweeping is an experiment of a sweep of so many runs, each of a millisecond.
func (l *load) sweeping(name string, runs int) Experiment {
	return Experiment{Name: name, Run: func(ctx context.Context, o Options) (*Outcome, error) {
		err := Each(ctx, o, runs, func(i int) error {
			l.mu.Lock()
			l.now++
			l.most = max(l.most, l.now)
			l.began = append(l.began, fmt.Sprint(name, o.Seed, ".", i))
			l.mu.Unlock()
			time.Sleep(time.Millisecond)
			l.mu.Lock()
			l.now--
			l.mu.Unlock()
			return nil
		})
		return &Outcome{Rows: []Row{Within("a", "b", 1, 1, 1)}}, err
	}}
}

// Simulations of several experiments and seeds share the places, all of which are used
// while there is work, and what comes first begins first.
func TestBatch_sharesPlaces(t *testing.T) {
	inOrder := []string{"a1.0", "a2.0", "a3.0", "a4.0", "b1.0", "b1.1", "b1.2", "b2.0", "b2.1", "b2.2", "b3.0", "b3.1", "b3.2", "b4.0", "b4.1", "b4.2"}
	for jobs, want := range map[int]time.Duration{1: 16 * time.Millisecond, 2: 8 * time.Millisecond, 3: 6 * time.Millisecond, 16: time.Millisecond, 40: time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l, start := new(load), time.Now()
			b := Batch{Subjects: Subjects([]Experiment{l.sweeping("a", 1), l.sweeping("b", 3)}), Options: Options{Seed: 1, Seeds: 4, Jobs: jobs}}
			var told []string
			err := b.Run(t.Context(), func(_ int, r *Report, err error) { told = append(told, r.Experiment) })
			if err != nil || !slices.Equal(told, []string{"a", "b"}) {
				t.Errorf("-j %d: %v, %v", jobs, err, told)
			}
			if took := time.Since(start); took != want || l.most != min(jobs, 16) || len(l.began) != 16 {
				t.Errorf("-j %d: %d runs, %d at once, in %v, want %v", jobs, len(l.began), l.most, took, want)
			}
			if jobs == 1 && !slices.Equal(l.began, inOrder) {
				t.Errorf("began %v", l.began)
			}
		})
	}
}
