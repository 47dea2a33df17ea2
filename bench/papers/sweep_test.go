package papers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weft/bench/sim"
)

func TestEach_callsAllOnceAndAtMostJobsAtOnce(t *testing.T) {
	for _, jobs := range []int{0, 1, 2, 7, 100} {
		synctest.Test(t, func(t *testing.T) {
			const n = 40
			var mu sync.Mutex
			now, most := 0, 0
			calls := make([]int, n)
			var progress []int
			o := Options{Jobs: jobs, Progress: func(done, total int) {
				if total != n {
					t.Errorf("total %d, want %d", total, n)
				}
				progress = append(progress, done)
			}}
			err := Each(t.Context(), o, n, func(i int) error {
				mu.Lock()
				calls[i]++
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Duration(1+i%3) * time.Millisecond)
				mu.Lock()
				now--
				mu.Unlock()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if slices.Min(calls) != 1 || slices.Max(calls) != 1 {
				t.Errorf("jobs %d: calls %v", jobs, calls)
			}
			if want := min(max(jobs, 1), n); most != want {
				t.Errorf("jobs %d: %d at once, want %d", jobs, most, want)
			}
			if len(progress) != n || !slices.IsSorted(progress) || progress[n-1] != n {
				t.Errorf("jobs %d: progress %v", jobs, progress)
			}
		})
	}
}

// Of two that fail the first is reported, though the second ends earlier.
func TestEach_reportsTheLeastThatFails(t *testing.T) {
	for _, jobs := range []int{1, 2, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			late := make(map[int]bool)
			var mu sync.Mutex
			err := Each(t.Context(), Options{Jobs: jobs}, 50, func(i int) error {
				mu.Lock()
				late[i] = true
				mu.Unlock()
				time.Sleep(time.Duration(10-min(i, 9)) * time.Millisecond)
				if i == 3 || i == 4 {
					return fmt.Errorf("no %d", i)
				}
				return nil
			})
			if err == nil || err.Error() != "run 4 of 50: no 3" {
				t.Errorf("jobs %d: %v", jobs, err)
			}
			if late[30] {
				t.Errorf("jobs %d: went on after the failure", jobs)
			}
		})
	}
}

func TestEach_returnsAtOnceWhenStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Millisecond)
			stop()
		}()
		var mu sync.Mutex
		begun := 0
		start := time.Now()
		err := Each(ctx, Options{Jobs: 2}, 10, func(int) error {
			mu.Lock()
			begun++
			mu.Unlock()
			time.Sleep(time.Hour)
			return nil
		})
		if !errors.Is(err, context.Canceled) || time.Since(start) != time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(24 * time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if begun != 2 {
			t.Errorf("%d begun, want the 2 under way", begun)
		}
		if err := Each(ctx, Options{}, 1, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped before: %v", err)
		}
	})
}

func TestSweep_namesTheConfigThatIsWrong(t *testing.T) {
	results, err := Sweep(t.Context(), Options{Jobs: 2}, make([]sim.Config, 3))
	if err == nil || results != nil {
		t.Fatalf("%v, %v", results, err)
	}
	if results, err := Sweep(t.Context(), Options{}, nil); err != nil || len(results) != 0 {
		t.Errorf("of none: %v, %v", results, err)
	}
}

func TestHops_areAllRuns(t *testing.T) {
	if n := Hops([]*sim.Result{{PacketHops: 3}, {PacketHops: 4}}); n != 7 {
		t.Errorf("%d, want 7", n)
	}
}
