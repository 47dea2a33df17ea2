package reorder

import (
	"fmt"
	"runtime"
	"time"

	"weft/bench/stats"
	"weft/resequencer"
)

// player plays an input to one implementation.
type player struct {
	c       Case
	impl    Impl
	flows   int
	subject subject
	in      []arrival
	at      int // in the input
	batch   *batch
	check   *checker
	// Since warmUp:
	pieces int       // delivered
	ns     []float64 // a packet, by round
	allocs uint64
}

func newPlayer(c Case, impl Impl, in []arrival, flows int) *player {
	return &player{
		c: c, impl: impl, flows: flows, in: in,
		subject: impl.make(c, flows),
		batch:   newBatch(c.parse),
		check:   newChecker(in, flows, impl.orders && !c.loses),
	}
}

// warmUp plays on to a place in the input, and forgets what it counted.
func (p *player) warmUp(to int) error {
	if _, err := p.play(p.c.known(p.flows)); err != nil {
		return err
	}
	_, err := p.play(to)
	p.check.begin()
	p.pieces = 0
	return err
}

// round plays on and measures. Allocations are counted over all that happens;
// what prepares and checks makes none once it is warm.
func (p *player) round(to int) error {
	var before, after runtime.MemStats
	packets := float64(to - p.at)
	runtime.ReadMemStats(&before)
	spent, err := p.play(to)
	runtime.ReadMemStats(&after)
	p.allocs += after.Mallocs - before.Mallocs
	p.ns = append(p.ns, float64(spent.Nanoseconds())/packets)
	return err
}

// play goes on to a place in the input, and returns the time spent in push.
func (p *player) play(to int) (spent time.Duration, err error) {
	for p.at < to {
		p.batch.fill(p.in, p.at, to)
		p.at += len(p.batch.names)
		p.subject.prepare(p.batch)
		start := time.Now()
		p.subject.push(p.batch)
		spent += time.Since(start)
		if err := p.collect(); err != nil {
			return 0, err
		}
	}
	return spent, nil
}

func (p *player) collect() error {
	names, pieces, err := p.subject.collect(p.batch)
	if err != nil {
		return err
	}
	p.pieces += pieces
	return p.check.take(names, p.at)
}

func (p *player) failed(err error) error {
	return fmt.Errorf("%s, %s, %d flows: %w", p.c.Name, p.impl.Name, p.flows, err)
}

// result ends the play, of which so many packets were measured.
func (p *player) result(packets int) (Result, error) {
	p.subject.flush()
	if err := p.collect(); err != nil {
		return Result{}, err
	}
	if err := p.check.end(p.at); err != nil {
		return Result{}, err
	}
	held, err := p.subject.state()
	if err != nil {
		return Result{}, err
	}
	r := Result{
		Case: p.c.Name, Impl: p.impl.Name, Flows: p.flows,
		NsPerPacket:       stats.Median(p.ns),
		NsPerPacketMin:    stats.Percentile(p.ns, 0),
		NsPerPacketMax:    stats.Percentile(p.ns, 100),
		AllocsPerPacket:   float64(p.allocs) / float64(packets),
		HeldBytesMax:      held,
		OutOfOrder:        float64(p.check.outOfOrder) / float64(p.check.delivered),
		DeliveredSegments: float64(p.check.delivered) / float64(p.pieces),
	}
	if n := remembered(p.flows); p.impl.bounded && n != resequencer.DefaultFlows {
		r.Config = fmt.Sprintf("Flows=%d", n)
	}
	return r, nil
}
