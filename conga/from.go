package conga

import (
	"math/bits"
	"time"
)

// inward is a row of the Congestion-From table.
type inward struct {
	at    [Tags]time.Duration // of the latest packet
	ce    [Tags]uint8         // what it said
	fed   [Tags]uint8         // what was reported last
	known uint16              // a bit per tag that was ever reported, for fed
	news  uint16              // a bit per tag heard of since its last report
	next  uint8               // the tag at which the round goes on
}

// Received records that a packet from a rack came by a path of this tag, on which
// the busiest link's metric was ce.
func (t *Table) Received(src uint32, tag, ce uint8, now time.Duration) {
	row := t.from.use(src, now)
	tag %= Tags
	row.ce[tag], row.at[tag] = min(ce, MaxMetric), now
	row.news |= 1 << tag
}

// NextFeedback returns the report for a packet to a rack. ok is false if there is none.
// It takes turns among the tags that packets have brought since their last report, and
// prefers the next one whose metric has changed. It does not report a metric that is
// older than Age.
func (t *Table) NextFeedback(dst uint32, now time.Duration) (tag, metric uint8, ok bool) {
	row := t.from.get(dst)
	if row == nil || row.news == 0 {
		return 0, 0, false
	}
	changed := uint16(0)
	for news := row.news; news != 0; news &= news - 1 {
		i := bits.TrailingZeros16(news)
		switch {
		case now-row.at[i] > t.config.Age:
			row.news &^= 1 << i
		case row.known>>i&1 == 0 || row.fed[i] != row.ce[i]:
			changed |= 1 << i
		}
	}
	from := changed
	if from == 0 {
		from = row.news
	}
	if from == 0 {
		return 0, 0, false
	}
	tag = uint8(bits.TrailingZeros16(bits.RotateLeft16(from, -int(row.next)))+int(row.next)) % Tags
	metric = row.ce[tag]
	row.fed[tag] = metric
	row.known |= 1 << tag
	row.news &^= 1 << tag
	row.next = (tag + 1) % Tags
	return tag, metric, true
}
