package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weft/internal/overview"
)

// kinds sorts what a status complains about (package overview) into checks, by words that it
// uses. What no word fits is of check status.
var kinds = []struct {
	check string
	signs []string
}{
	{"foreign", []string{"in front of weft's at"}},
	{"bgp", []string{"BGP neighbour", "BGP: "}},
	{"updates", []string{"messages of neighbours refused", "listened to any more", "updates are refused", "no message of the switches", "no update of the switches"}},
	{"path_mtu", []string{"smaller MTU", "were too long"}},
	{"links", []string{"link ", "links ", "switch ", "switches ", "host ", "hosts ", "port ", "path ", "paths ", "probes get lost", "uplink "}},
	{"racks", []string{"rack ", "racks ", "packets to "}},
}

// kind is the check that a complaint belongs to.
func kind(what string) string {
	for _, k := range kinds {
		for _, sign := range k.signs {
			if k.check == "links" && strings.HasPrefix(what, sign) || k.check != "links" && strings.Contains(what, sign) {
				return k.check
			}
		}
	}
	return "status"
}

// complaints are what the daemon's status says is wrong, of one kind.
func (f *Facts) complaints(of string, w weight) (all []Finding) {
	var v overview.View
	switch {
	case f.Host != nil:
		v = f.Host.View(f.HostBefore, f.Elapsed)
	case f.Switch != nil:
		v = f.Switch.View(f.SwitchBefore, f.Elapsed)
	}
	for _, p := range v.Problems {
		if p.Note || kind(p.What) != of {
			continue
		}
		if p.Do == "" {
			p.Do = fmt.Sprintf("weft status --all; journalctl -u weft-%s", f.Role)
		}
		all = append(all, wrong(w, p.What, p.Do))
	}
	return all
}

// told is what is said of a check that asks the daemon.
func (f *Facts) told(well string) string {
	if f.Host == nil && f.Switch == nil {
		return "not asked: no daemon answers"
	}
	return well
}

func askUpdates(f *Facts) ([]Finding, string) {
	return f.complaints("updates", explains), f.told("those that come are believed")
}

func askBGP(f *Facts) ([]Finding, string) {
	return f.complaints("bgp", seen), f.told("sessions are established, where there are any")
}

func askPathMTU(f *Facts) ([]Finding, string) {
	return f.complaints("path_mtu", seen), f.told("packets of full size come home by all paths")
}

func askLinks(f *Facts) ([]Finding, string) {
	return f.complaints("links", follows), f.told("none is suspected, slow or loses packets")
}

func askRacks(f *Facts) ([]Finding, string) {
	all := f.complaints("racks", follows)
	well := "packets take their paths"
	if f.Host != nil && f.Host.Reach != nil {
		well = fmt.Sprintf("%d of %d by paths", f.Host.Reach.Racks-f.Host.Reach.Plain, f.Host.Reach.Racks)
	}
	return all, f.told(well)
}

func askStatus(f *Facts) ([]Finding, string) {
	w := follows
	if f.Host != nil && f.Host.State == stateAway {
		w = seen
	}
	return f.complaints("status", w), f.told("the daemon complains of nothing else")
}

// askBouncing finds bouncing switches from which no probe comes home though they answer a ping:
// they do not take outer headers off, or something drops these.
func askBouncing(f *Facts) (all []Finding, well string) {
	if f.Host == nil || f.Host.Failures == nil {
		return nil, f.told("the daemon sends no probes")
	}
	silent, ways := f.silent()
	if len(silent) == 0 {
		return nil, fmt.Sprintf("outer headers are taken off by %d switches", ways)
	}
	var mute, dead, unasked []string
	for _, s := range silent {
		if f.Answers[s.addr] {
			mute = append(mute, s.name)
		} else if _, asked := f.Answers[s.addr]; asked {
			dead = append(dead, s.name)
		} else {
			unasked = append(unasked, s.name)
		}
	}
	none := len(silent) == ways && ways > 1 // comes home
	switch {
	case len(mute) > 0 && none:
		all = append(all, wrong(seen, fmt.Sprintf("%s %s a ping, and probes in outer headers come home from none of the bouncing switches", join(mute), verb(mute, "answer")),
			"what all have in common is at fault: this host's or its edge switch's firewall on protocol 4, rp_filter at the edge switch, or no switch takes outer headers off; weft doctor there, weft plan prints what a switch needs"))
	case len(mute) > 0:
		all = append(all, wrong(seen, fmt.Sprintf("%s %s a ping, and probes in outer headers do not come home from there", join(mute), verb(mute, "answer")),
			fmt.Sprintf("at %s: weft doctor; is there what takes outer headers off (weft plan --node %s), is rp_filter 0, does a firewall drop protocol 4?", mute[0], mute[0])))
	}
	if len(dead) > 0 {
		all = append(all, wrong(follows, fmt.Sprintf("%s %s neither probes nor a ping", join(dead), verb(dead, "answer")), "is the switch up, and are its links? weft blame"))
	}
	if len(unasked) > 0 {
		all = append(all, wrong(seen, fmt.Sprintf("probes in outer headers do not come home from %s; whether what is there answers a ping was not asked", join(unasked)),
			fmt.Sprintf("run weft doctor as root, or ping them; at %s: weft doctor", unasked[0])))
	}
	return all, ""
}

// suffers reports whether packets of the host do not take their paths.
func (f *Facts) suffers() bool {
	if f.Host == nil {
		return false
	}
	if f.Host.Reach != nil && f.Host.Reach.Plain > 0 {
		return true
	}
	if f.Host.Failures == nil {
		return false
	}
	silent, _ := f.silent()
	return len(silent) > 0
}

type bounce struct {
	name string
	addr netip.Addr
}

// whyUnproved begins why packets to a rack go plain for a moment, until its paths are proved.
const whyUnproved = "not proved yet"

// silent lists the bouncing switches from which no probe comes home, and counts all. A path
// whose fault has a place is not among them.
func (f *Facts) silent() (all []bounce, ways int) {
	seen := make(map[netip.Addr]bool)
	for _, p := range f.Host.Failures.Paths {
		if p.Bounce == "" || seen[p.Via] {
			continue
		}
		seen[p.Via] = true
		ways++
		unproved := slices.ContainsFunc(f.Host.Racks, func(r overview.Rack) bool {
			return strings.Contains(r.Why, "boomerang") && !strings.HasPrefix(r.Why, whyUnproved) && names(r.Why, p.Bounce)
		})
		if p.State == "quarantined" || p.State == "down" && p.Blamed == "" || unproved {
			all = append(all, bounce{p.Bounce, p.Via})
		}
	}
	return all, ways
}

// names reports whether a sentence has a name in it as a word.
func names(sentence, name string) bool {
	return slices.ContainsFunc(strings.Fields(sentence), func(w string) bool { return strings.Trim(w, ",:;") == name })
}

// verb is what several do, or one.
func verb(who []string, does string) string {
	if len(who) == 1 {
		return does + "s"
	}
	return does
}
