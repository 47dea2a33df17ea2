package hostprog

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"weft/conga"
	"weft/internal/kernel"
)

// TagLoad is what CONGA knows of the paths of one tag to a host.
type TagLoad struct {
	Local, Remote uint8 // 0 to conga.MaxMetric; Remote is as reported, aged
	Known         bool  // there was a report, Age ago
	Age           time.Duration
}

// peerValue is struct peer of bpf/conga.h.
type peerValue struct {
	At, Arrived           [conga.Tags]uint64
	Metric, CE, Fed       [conga.Tags]uint8
	Reported, Known, News uint16
	Next, Turn, Sends     uint8
	_                     [7]uint8
}

// dreValue is struct dre of bpf/conga.h.
type dreValue struct{ Tick, X uint64 }

// Reports calls f for each IPv4 host to which flowlets went by CONGA, with what is known of
// the paths of each tag. f must not call the Spray. Under other policies there is none. It costs
// two system calls a host.
func (o *Spray) Reports(f func(host netip.Addr, tags *[conga.Tags]TagLoad)) error {
	return o.use(func() error {
		if o.ways.known.how.mode != sprayInformed {
			return nil
		}
		now, err := kernel.Monotonic()
		if err != nil {
			return err
		}
		local, err := o.localLoads(now)
		if err != nil {
			return fmt.Errorf("spray: Reports: %w", err)
		}
		var host [4]byte
		var p peerValue
		it := o.peers.Iterate()
		for it.Next(&host, &p) {
			if p.Sends == 0 || host == [4]byte{} { // that is all of IPv6
				continue
			}
			tags := local
			for i := range tags {
				if p.Reported>>i&1 != 0 {
					age := time.Duration(now - min(p.At[i], now))
					tags[i].Known, tags[i].Age = true, age
					tags[i].Remote = aged(p.Metric[i], age, o.conga.Age)
				}
			}
			f(netip.AddrFrom4(host), &tags)
		}
		if err := it.Err(); err != nil {
			return fmt.Errorf("spray: Reports: %w", err)
		}
		return nil
	})
}

// localLoads is what the host itself has sent by each tag.
func (o *Spray) localLoads(now uint64) (tags [conga.Tags]TagLoad, err error) {
	const alpha = 1. / dreTicks
	for i := range tags {
		var d dreValue
		if err := o.local.Lookup(uint32(i), &d); err != nil {
			return tags, err
		}
		tick := now / dreTick(o.conga)
		x := float64(d.X) * math.Pow(1-alpha, float64(tick-min(d.Tick, tick)))
		tags[i].Local = uint8(min(x*(conga.MaxMetric+1)/float64(dreTarget(o.conga)), conga.MaxMetric))
	}
	return tags, nil
}

// aged is what is left of a report.
func aged(metric uint8, age, full time.Duration) uint8 {
	over := age - full
	if over <= 0 {
		return metric
	}
	return metric - uint8(min(1+over*8/full, time.Duration(metric)))
}
