package membership

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"weft/bench/stats"
	"weft/mesh"
)

// kind is what happens to a host.
type kind string

const (
	joins  kind = "joins"
	leaves kind = "leaves"
	dies   kind = "dies, from its end"
	expiry kind = "dies, from its lease's end"
	moves  kind = "moves to another endpoint"
	renews kind = "announces its next key"
	rolled kind = "has replaced its key, from announcing it"
	healed kind = "is reached by etcd again, until it is registered"
	elects kind = "etcd's leader is killed, until there is another"
)

// event is something that happens to a host, and that others act on.
type event struct {
	kind    kind
	name    string
	quiet   bool // before the first kill
	began   time.Duration
	expired time.Duration // the end of the lease; 0: not yet
	acts    func(host string, peers []mesh.Peer) bool
	waits   map[string]bool // who has not acted
	acted   map[string]time.Duration
}

// book has all events. It is safe for concurrent use.
type book struct {
	mu    sync.Mutex
	open  []*event
	quiet bool
	took  map[rowKey]*samples
	late  func(what string)
	left  int // events that ended before all had acted
}

type rowKey struct {
	kind  kind
	quiet bool
}

// samples are seconds: until the last host, and until each.
type samples struct{ last, each []float64 }

func newBook() *book { return &book{quiet: true, took: make(map[rowKey]*samples)} }

// killing says that members of etcd are killed from now on.
func (b *book) killing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiet = false
}

// begin notes an event, which all of audience but the host itself are to act on.
func (b *book) begin(k kind, name string, now time.Duration, audience []string, acts func(host string, peers []mesh.Peer) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k != renews {
		b.overtake(name)
	}
	e := &event{kind: k, name: name, quiet: b.quiet, began: now, acts: acts, waits: make(map[string]bool), acted: make(map[string]time.Duration)}
	for _, other := range audience {
		if other != name {
			e.waits[other] = true
		}
	}
	if len(e.waits) > 0 {
		b.open = append(b.open, e)
	}
}

// overtake drops the open events of a host to which something else happens.
func (b *book) overtake(name string) {
	b.open = slices.DeleteFunc(b.open, func(e *event) bool {
		if e.name == name {
			b.left++
		}
		return e.name == name
	})
}

// act takes note of the peers that a host has from now on.
func (b *book) act(host string, now time.Duration, peers []mesh.Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.open {
		if e.waits[host] && e.acts(host, peers) {
			delete(e.waits, host)
			e.acted[host] = now
		}
	}
	b.close()
}

// excuse drops a host from all that it has not acted on: it has ended, or cannot know.
func (b *book) excuse(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.open {
		delete(e.waits, host)
	}
	b.close()
}

// ended takes note that etcd has ended a registration.
func (b *book) ended(name string, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.open {
		if e.kind == dies && e.name == name && e.expired == 0 {
			e.expired = now
		}
	}
}

// pending says which events all have not acted on.
func (b *book) pending() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.open {
		list = append(list, fmt.Sprintf("%s %s: %d have not acted", e.name, e.kind, len(e.waits)))
	}
	return list
}

// close files the events that all have acted on. The caller holds the lock.
func (b *book) close() {
	b.open = slices.DeleteFunc(b.open, func(e *event) bool {
		if len(e.waits) > 0 {
			return false
		}
		if len(e.acted) == 0 { // all were excused
			b.left++
			return true
		}
		if who, took := e.last(); took > slow && b.late != nil {
			b.late(fmt.Sprintf("%s %s: %s acted after %.1f s", e.name, e.kind, who, took.Seconds()))
		}
		b.file(e.kind, e.quiet, e.began, e.acted)
		if e.kind == dies && e.expired > 0 {
			b.file(expiry, e.quiet, e.expired, e.acted)
		}
		return true
	})
}

// slow is after how long it is told who acted last.
const slow = 20 * time.Second

// last is who acted last, and after how long.
func (e *event) last() (who string, took time.Duration) {
	for host, at := range e.acted {
		if at-e.began > took {
			who, took = host, at-e.began
		}
	}
	return who, took
}

func (b *book) file(k kind, quiet bool, began time.Duration, acted map[string]time.Duration) {
	last := time.Duration(0)
	var each []float64
	for _, at := range acted {
		last = max(last, at)
		each = append(each, max(0, (at-began).Seconds()))
	}
	s := b.row(k, quiet)
	s.each = append(s.each, each...)
	s.last = append(s.last, max(0, (last-began).Seconds()))
}

func (b *book) row(k kind, quiet bool) *samples {
	s := b.took[rowKey{k, quiet}]
	if s == nil {
		s = &samples{}
		b.took[rowKey{k, quiet}] = s
	}
	return s
}

// add files an event that concerns one host alone.
func (b *book) add(k kind, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.row(k, b.quiet)
	s.last = append(s.last, took.Seconds())
}

// rows are all times, in the order of kinds.
func (b *book) rows() (rows []Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range []kind{joins, leaves, moves, renews, rolled, dies, expiry, healed, elects} {
		for _, quiet := range []bool{true, false} {
			s := b.took[rowKey{k, quiet}]
			if s == nil {
				continue
			}
			rows = append(rows, Row{Event: string(k), Killing: !quiet, Events: len(s.last), Last: timesOf(s.last), Each: timesOf(s.each)})
		}
	}
	return rows
}

func timesOf(x []float64) *Times {
	if len(x) == 0 {
		return nil
	}
	return &Times{Median: stats.Median(x), P99: stats.Percentile(x, 99), Max: slices.Max(x)}
}
