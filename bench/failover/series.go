package failover

import (
	"sync"
	"time"
)

// point is the goodput of all receivers together over one interval that ends
// at T.
type point struct {
	T    time.Duration // since the series began
	Mbit float64
}

// series samples what receivers count, until stopped.
type series struct {
	start time.Time
	count func() []int64
	quit  chan struct{}
	done  sync.WaitGroup

	mu      sync.Mutex
	samples []sample
}

// sample is a reading of all receivers' bytes.
type sample struct {
	at    time.Time
	bytes []int64
}

// startSeries reads count every interval.
func startSeries(interval time.Duration, count func() []int64) *series {
	s := &series{start: time.Now(), count: count, quit: make(chan struct{})}
	s.samples = []sample{{s.start, count()}}
	s.done.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-tick.C:
				s.read()
			}
		}
	})
	return s
}

func (s *series) read() {
	now := sample{time.Now(), s.count()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, now)
}

func (s *series) stop() {
	close(s.quit)
	s.done.Wait()
}

// points returns the goodput of each interval so far.
func (s *series) points() []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	var points []point
	for i := 1; i < len(s.samples); i++ {
		a, b := s.samples[i-1], s.samples[i]
		points = append(points, point{b.at.Sub(s.start), rate(a, b)})
	}
	return points
}

// between is the goodput from one moment to another, as far as samples cover
// it: those within.
func (s *series) between(from, to time.Time) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first, last *sample
	for i := range s.samples {
		if at := s.samples[i].at; at.Before(from) || at.After(to) {
			continue
		}
		if first == nil {
			first = &s.samples[i]
		}
		last = &s.samples[i]
	}
	if first == nil || first == last {
		return 0
	}
	return rate(*first, *last)
}

// idle are the receivers, by number, that got nothing between two moments.
func (s *series) idle(from, to time.Time) (idle []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first, last []int64
	for _, x := range s.samples {
		if x.at.Before(from) || x.at.After(to) {
			continue
		}
		if first == nil {
			first = x.bytes
		}
		last = x.bytes
	}
	for i := range first {
		if last[i] == first[i] {
			idle = append(idle, i)
		}
	}
	return idle
}

// rate is in Mbit/s.
func rate(a, b sample) float64 {
	var bytes int64
	for i := range b.bytes {
		bytes += b.bytes[i] - a.bytes[i]
	}
	return float64(bytes) * 8 / b.at.Sub(a.at).Seconds() / 1e6
}

// sampleEvery is how often goodput is read: DRB's Fig. 12 has a point every
// second, and a failure is over in a tenth of that.
const sampleEvery = 100 * time.Millisecond
