package daemon

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/internal/congestion"
	"weft/internal/hostsetup"
)

// maxControlPrefixes bounds congestion_control_prefixes: each is a route or two.
const maxControlPrefixes = 256

func (c *Config) checkCongestion() error {
	name := c.CongestionControl
	switch {
	case len(name) > congestion.MaxName || strings.ContainsAny(name, "/ \t\n"):
		return c.lines.Errorf("congestion_control", "%q is not a congestion control's name: at most %d bytes without slashes and blanks", name, congestion.MaxName)
	case name == "" && len(c.CongestionControlPrefixes) > 0:
		return c.lines.Errorf("congestion_control_prefixes", "are given, and congestion_control is auto; name one, such as %s", congestion.Name)
	case len(c.CongestionControlPrefixes) > maxControlPrefixes:
		return c.lines.Errorf("congestion_control_prefixes", "has %d entries, must have at most %d; join prefixes", len(c.CongestionControlPrefixes), maxControlPrefixes)
	}
	for i, p := range c.CongestionControlPrefixes {
		key := fmt.Sprintf("congestion_control_prefixes[%d]", i)
		if p != p.Masked() {
			return c.lines.Errorf(key, "%s has bits behind its length; write %s", p, p.Masked())
		}
		if all := c.destinations(); all != nil && !slices.ContainsFunc(all, p.Overlaps) {
			return c.lines.Errorf(key, "%s has no destination of weft's, which are in %v", p, all)
		}
	}
	return nil
}

// destinations are the prefixes to which weft has routes; nil: they are not known yet.
func (c *Config) destinations() (all []netip.Prefix) {
	if c.tunnels() {
		for _, p := range c.UDP.Peers {
			all = append(all, p.Prefixes...)
		}
		return all
	}
	if c.fabric == nil {
		return nil
	}
	all = hostsetup.Prefixes(c.fabric)
	if c.fabric6 != nil {
		for edge := range c.fabric6.Racks() {
			all = append(all, c.fabric6.RackPrefixesOf(edge, true)...)
		}
	}
	return all
}

// congestion is the part of the set-up that says which congestion control is used.
func (c *Config) congestion() hostsetup.Congestion {
	o := hostsetup.Congestion{Control: c.CongestionControl}
	if len(c.CongestionControlPrefixes) > 0 {
		o.For = c.CongestionControlPrefixes
	}
	return o
}
