package conga

import (
	"math/rand/v2"
	"time"
)

// Table is what a host knows of the congestion of its paths, and of others' paths to
// itself. A rack is any number that the caller chooses.
type Table struct {
	config  Config
	local   [Tags]DRE
	to      racks[outward]
	from    racks[inward]
	rng     rand.PCG
	refused uint64
}

// outward is a row of the Congestion-To table.
type outward struct {
	at     [Tags]time.Duration // of the report
	chosen [Tags]uint64
	metric [Tags]uint8
	known  uint16 // a bit per tag that was ever reported
}

// New returns a Table that knows nothing. An error names the field that is wrong.
func New(c Config) (*Table, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	t := &Table{
		config: c,
		to:     newRacks[outward](c.MaxDestinations),
		from:   newRacks[inward](c.MaxDestinations),
		rng:    *rand.NewPCG(c.Seed, 0x636f6e6761),
	}
	for i := range t.local {
		t.local[i] = NewDRE(c.Tau, c.RateBits)
	}
	return t, nil
}

// Choose returns the path of a new flowlet to a rack (CONGA §3.5): one with the least
// max(local, remote) metric. last is the path of the flow's latest flowlet, or -1. Choose
// returns last if it is among the best, otherwise a random one of the best. The result is
// -1 if paths is empty. paths is not kept. tag is called once or twice for each path and
// must return the same both times. A path that occurs several times is more likely in
// proportion.
func (t *Table) Choose(dst uint32, paths []int, tag func(path int) uint8, last int, now time.Duration) (path int) {
	if len(paths) == 0 {
		return -1
	}
	row := t.to.use(dst, now)
	metrics := t.metrics(row, now)
	path = t.best(paths, tag, last, &metrics)
	row.chosen[tag(path)%Tags]++
	return path
}

// metrics returns max(local, remote) of every tag.
func (t *Table) metrics(row *outward, now time.Duration) (m [Tags]uint8) {
	for i := range m {
		m[i] = max(t.local[i].Metric(now), row.remote(i, now, t.config.Age))
	}
	return m
}

func (t *Table) best(paths []int, tag func(path int) uint8, last int, metrics *[Tags]uint8) int {
	least, equals, lastIs := uint8(MaxMetric+1), 0, uint8(MaxMetric+1)
	for _, p := range paths {
		m := metrics[tag(p)%Tags]
		switch {
		case m < least:
			least, equals = m, 1
		case m == least:
			equals++
		}
		if p == last {
			lastIs = m
		}
	}
	if lastIs == least {
		return last
	}
	n := int(t.rng.Uint64() % uint64(equals))
	for _, p := range paths {
		if metrics[tag(p)%Tags] == least {
			if n == 0 {
				return p
			}
			n--
		}
	}
	return paths[0] // only if tag changes its mind
}

// Sent adds bytes sent by a path of this tag, to any rack.
func (t *Table) Sent(tag uint8, bytes int, now time.Duration) {
	t.local[tag%Tags].Add(bytes, now)
}

// Feedback takes a rack's report of the congestion on the way to it by paths of this tag.
// A report from a rack to which nothing is sent is refused and counted.
func (t *Table) Feedback(dst uint32, tag, metric uint8, now time.Duration) {
	row := t.to.get(dst)
	if row == nil {
		t.refused++
		return
	}
	tag %= Tags
	row.metric[tag], row.at[tag] = min(metric, MaxMetric), now
	row.known |= 1 << tag
}

// remote is the reported metric of a tag, aged.
func (o *outward) remote(tag int, now, age time.Duration) uint8 {
	m := o.metric[tag]
	over := now - o.at[tag] - age
	if m == 0 || over <= 0 {
		return m
	}
	lost := 1 + over*8/age
	return m - uint8(min(lost, time.Duration(m)))
}
