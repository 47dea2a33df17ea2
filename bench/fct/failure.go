package fct

import (
	"fmt"
	"strconv"
	"strings"

	"weft/topology"
)

// failure is what is wrong with the fabric of a run.
type failure struct {
	name string
	link string  // "": nothing
	rate float64 // as a part of what the link had; 0: the link is down
}

// FailureHelp names the failures; the first is none. They are called as those of weft bench
// asymmetry.
const FailureHelp = "symmetric, link-down(LINK), or slow-link(LINK,PART) with a part of its rate, of which no host is told"

const slowPart = 0.25 // as of Luopan §4.7's link

// parseFailure reads a name such as slow-link(e0.0-a0.0,0.25). Without parameters it is the
// first link between switches.
func parseFailure(s string, t *topology.Topology) (f failure, err error) {
	if s == "" || s == "symmetric" {
		return failure{name: "symmetric"}, nil
	}
	kind, rest, given := strings.Cut(s, "(")
	args, closed := strings.CutSuffix(rest, ")")
	if given != closed || kind != "link-down" && kind != "slow-link" {
		return f, fmt.Errorf("failure %q: unknown; known: %s", s, FailureHelp)
	}
	link, part, parted := strings.Cut(args, ",")
	if link == "" {
		link = t.LinkName(topology.LinkID(t.NumHosts()))
	}
	l, err := t.LinkByName(link)
	if err != nil {
		return f, fmt.Errorf("failure %q: %w", s, err)
	}
	if int(l.ID) < t.NumHosts() && kind == "link-down" {
		return f, fmt.Errorf("failure %q: without it the host has no link: name one between switches, such as %s", s, t.LinkName(topology.LinkID(t.NumHosts())))
	}
	f.link = t.LinkName(l.ID)
	if kind == "link-down" {
		if parted {
			return f, fmt.Errorf("failure %q: link-down has no part; write link-down(%s)", s, f.link)
		}
		f.name = fmt.Sprintf("link-down(%s)", f.link)
		return f, nil
	}
	f.rate = slowPart
	if parted {
		if f.rate, err = strconv.ParseFloat(strings.TrimSpace(part), 64); err != nil || !(f.rate > 0 && f.rate < 1) {
			return f, fmt.Errorf("failure %q: %q must be a part of the link's rate, above 0 and below 1", s, part)
		}
	}
	f.name = fmt.Sprintf("slow-link(%s,%g)", f.link, f.rate)
	return f, nil
}

// WithFailure returns the fabric with what the options say is wrong, and as hosts are told that it
// is: they know of a link that is down, and not of one that is slow.
func (o *Options) WithFailure() (real, known *topology.Topology, err error) {
	f, err := parseFailure(o.Failure, o.Topology)
	if err != nil || f.link == "" {
		return o.Topology, o.Topology, err
	}
	l, err := o.Topology.LinkByName(f.link)
	if err != nil {
		return nil, nil, err
	}
	if f.rate == 0 {
		real = o.Topology.Without(l.ID)
		return real, real, nil
	}
	rated, err := withRates(o.Topology, o.RateMbit)
	if err != nil {
		return nil, nil, err
	}
	slow := rated.Rate(l.ID) * f.rate
	if strings.Contains(rated.String(), ","+f.link+"=") {
		return nil, nil, fmt.Errorf("failure %s: the topology has a rate of its own for that link: change it there", f.name)
	}
	real, err = topology.Parse(fmt.Sprintf("%s,%s=%g", rated, f.link, slow))
	if err != nil {
		return nil, nil, err
	}
	return real.Without(rated.Down()...), o.Topology, nil
}

// withRates returns the fabric with rateMbit for each kind of link that has no rate.
func withRates(t *topology.Topology, rateMbit float64) (*topology.Topology, error) {
	spec, last := t.String(), topology.LinkID(t.NumLinks()-1)
	first := topology.LinkID(t.NumHosts())
	for _, kind := range []struct {
		key  string
		link topology.LinkID
	}{{"host-rate", 0}, {"fabric-rate", first}, {"core-rate", last}} {
		if kind.key == "core-rate" && t.Node(t.Link(last).B).Layer != topology.LayerCore {
			continue
		}
		if t.Rate(kind.link) == 0 {
			spec += fmt.Sprintf(",%s=%g", kind.key, rateMbit)
		}
	}
	rated, err := topology.Parse(spec)
	if err != nil {
		return nil, err
	}
	return rated.Without(t.Down()...), nil
}
