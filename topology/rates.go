package topology

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// rateKeys are the parameters for the rates of the three kinds of links, in
// the order of the links' numbers.
var rateKeys = [...]string{"host-rate", "fabric-rate", "core-rate"}

const (
	minRate = 0.001 // Mbit/s
	maxRate = 1e7
)

// rates are the links' rates in Mbit/s. They do not change.
type rates struct {
	layer   [len(rateKeys)]float64 // 0: not given
	link    map[LinkID]float64     // where it differs from its layer's
	slowest float64                // of the links between switches, 0 if none of them has a rate
	// uneven says that a link between switches differs from its layer's: then
	// paths of a pair may differ.
	uneven bool
}

// Rate returns the rate of a link in Mbit/s, or 0 if the topology has no rates for the
// link's layer. A layer has rates for all of its links or for none.
func (t *Topology) Rate(l LinkID) float64 {
	if t.rates == nil {
		return 0
	}
	if r, ok := t.rates.link[l]; ok {
		return r
	}
	return t.rates.layer[t.rateLayer(l)]
}

// Slowest returns the rate of the slowest link between switches, up or down, in Mbit/s, or 0 if
// no rates are known, or t is nil. Where the fabric is data, it is the rate of the slowest path
// that its host has. The hosts' own links do not count: what waits there has not been divided
// between paths yet, or has come together again.
func (t *Topology) Slowest() float64 {
	switch {
	case t == nil:
	case t.view != nil:
		return t.view.slowest()
	case t.rates != nil:
		return t.rates.slowest
	}
	return 0
}

// rateLayer returns which of rateKeys a link is subject to.
func (t *Topology) rateLayer(l LinkID) int {
	switch i := int(l) - t.numHosts(); {
	case i < 0:
		return 0
	case i < t.numEdges()*t.aggs:
		return 1
	default:
		return 2
	}
}

// isRate reports whether a parameter is a rate: of a layer, or of a link,
// which is a name with a hyphen that is none of the other parameters'.
func isRate(key string) bool {
	return strings.Contains(key, "-")
}

// withRates returns t with rates, and with the specification that says them:
// layers first, then links in their order, none that is as its layer is.
func (t *Topology) withRates(given []param) (*Topology, error) {
	if len(given) == 0 {
		return t, nil
	}
	r := &rates{link: make(map[LinkID]float64)}
	lines := make(map[LinkID]param)
	for _, p := range given {
		rate, err := parseRate(p)
		if err != nil {
			return nil, err
		}
		if i := slices.Index(rateKeys[:], p.key); i >= 0 {
			r.layer[i] = rate
			continue
		}
		l, err := t.LinkByName(p.key)
		if err != nil {
			return nil, p.errorf("parameter %q is neither %s nor a link: %w", p.key, strings.Join(rateKeys[:], ", "), err)
		}
		if _, ok := r.link[l.ID]; ok {
			return nil, p.errorf("rate of %s given twice", t.LinkName(l.ID))
		}
		r.link[l.ID], lines[l.ID] = rate, p
	}
	if r.layer[2] != 0 && t.cores == 0 {
		return nil, fmt.Errorf("core-rate: %s has no core switches; the links to the spines have fabric-rate", t.kind)
	}
	u := *t
	u.rates = r
	return &u, u.settleRates(lines)
}

// settleRates checks and normalises single links' rates, and appends all
// rates to t's specification.
func (t *Topology) settleRates(lines map[LinkID]param) error {
	var own []LinkID
	for l := range t.rates.link {
		own = append(own, l)
	}
	slices.Sort(own)
	var spec strings.Builder
	spec.WriteString(t.spec)
	for i, key := range rateKeys {
		if r := t.rates.layer[i]; r != 0 {
			fmt.Fprintf(&spec, ",%s=%s", key, formatRate(r))
		}
	}
	for _, l := range own {
		layer := t.rateLayer(l)
		switch t.rates.layer[layer] {
		case 0:
			return lines[l].errorf("rate of %s: %s is missing, which the other links of its kind have", t.LinkName(l), rateKeys[layer])
		case t.rates.link[l]:
			delete(t.rates.link, l)
			continue
		}
		t.rates.uneven = t.rates.uneven || layer > 0
		fmt.Fprintf(&spec, ",%s=%s", t.LinkName(l), formatRate(t.rates.link[l]))
	}
	t.spec = spec.String()
	t.rates.findSlowest(t)
	return nil
}

func (r *rates) findSlowest(t *Topology) {
	for _, rate := range r.layer[1:] {
		r.slowest = slower(r.slowest, rate)
	}
	for l, rate := range r.link {
		if t.rateLayer(l) > 0 {
			r.slowest = slower(r.slowest, rate)
		}
	}
}

func parseRate(p param) (float64, error) {
	if p.value == "" {
		return 0, p.errorf("parameter %s has no value", p.key)
	}
	r, err := strconv.ParseFloat(p.value, 64)
	if err != nil || math.IsNaN(r) || r < minRate || r > maxRate {
		return 0, p.errorf("%s=%s: must be a rate in Mbit/s, from %v to %.0f", p.key, p.value, minRate, maxRate)
	}
	return r, nil
}

func formatRate(r float64) string { return strconv.FormatFloat(r, 'f', -1, 64) }
