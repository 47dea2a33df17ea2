package liveness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weft/encap"
)

// maxNamed is how many switches a reason names.
const maxNamed = 8

// switches names those of a kind's bouncing switches that are in question.
func (w *Watcher) switches(k *kind, in func(path int, up int32) bool) string {
	var names []string
	more := 0
	for i, up := range k.ups {
		switch {
		case !in(i, up):
		case len(names) == maxNamed:
			more++
		default:
			names = append(names, w.nameOf(up))
		}
	}
	list := strings.Join(slices.Compact(names), ", ") // virtual spines are one switch
	if more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// nameOf is a bouncing switch's name.
func (w *Watcher) nameOf(up int32) string {
	via := w.near.paths[up].via
	if id, ok := w.base.ByAddr(via); ok {
		return w.base.Node(id).Name
	}
	return via.String()
}

// doubtsOf is what an operator is to look at if nothing comes home. A boomerang comes
// from above with a source that is below: a strict filter anywhere drops it.
func (w *Watcher) doubtsOf() string {
	if w.config.Carrier == encap.CarrierSRv6 {
		return "the switches do not carry SRv6, something filters IPv6, or rp_filter is strict at a switch"
	}
	if w.config.six() {
		return "the switches do not decapsulate IPv6 in IPv6, something filters protocol 41, or a switch checks sources (uRPF) strictly"
	}
	return "the switches do not decapsulate IP-in-IP, something filters protocol 4, or rp_filter is strict at a switch"
}

// notThisFabric is what else it may be if nothing ever came home.
func (w *Watcher) notThisFabric() string {
	return fmt.Sprintf(", or topology: %v is not this fabric", w.base)
}

// notYet begins what is said before enough is known to say why.
const notYet = "not proved yet"

// whyKind says why the carrier is not used to the racks of a kind.
func (w *Watcher) whyKind(k *kind) string {
	live := func(_ int, up int32) bool { return !w.near.paths[up].down }
	all := w.switches(k, live)
	first, once, sized, tried, ever := never, false, true, true, w.proof.kinds[k.number].gate.ever
	for i, up := range k.ups {
		if b := &w.proof.bounces[up]; live(i, up) {
			once = once || b.once
			sized = sized && b.proved && !w.usable(up) && (ever || w.near.paths[up].size.known)
			tried = tried && b.missed >= missedInRow
			if b.missed > 0 {
				first = min(first, b.since)
			}
		}
	}
	switch {
	case all == "":
		return "no path is left: link-state updates say that all are down"
	case sized:
		return fmt.Sprintf("boomerangs come home from %s, but none of %d bytes or more has yet", all, w.sizes[len(w.sizes)-1])
	case once && (ever || tried && w.now-first >= w.patience()):
		return fmt.Sprintf("no boomerang came home from %s for %s: %s", all, seconds(w.now-first), w.doubtsOf())
	case !once && tried && w.now-first >= w.patience():
		return fmt.Sprintf("no boomerang has ever come home from %s: %s%s", all, w.doubtsOf(), w.notThisFabric())
	}
	return fmt.Sprintf(notYet+": boomerangs, some of full size, have to come home from %s", all)
}

// whyRack says why it is not used to a rack though its kind is proved.
func (w *Watcher) whyRack(r *rackProof, path bool) string {
	if !path {
		return "no path is left by a switch from which boomerangs come home"
	}
	first, names := never, []string(nil)
	for _, g := range r.groups {
		if g.answered >= 0 {
			first = min(first, g.quiet)
			if len(names) < maxNamed {
				names = append(names, g.address.String())
			}
		}
	}
	return fmt.Sprintf("no request to %s was answered for %s, though boomerangs come home: its rack does not get the decapsulated packets, its answers are lost, or weft was stopped there",
		strings.Join(names, ", "), seconds(w.now-first))
}

// smallerMTU is why long packets vanish where short ones do not.
const smallerMTU = "a link on the way has a smaller MTU, or loses longer packets"

// remarks says what is amiss with paths to a rack to which the carrier is used.
func (w *Watcher) remarks(k *kind, r *rackProof, level uint8, by int32) string {
	var list []string
	if out := w.switches(k, func(_ int, up int32) bool { return w.proof.avoids(up) && !w.proof.bounces[up].proved }); out != "" {
		list = append(list, fmt.Sprintf("not by %s: no boomerang comes home from there", out))
	}
	small := func(known bool) string {
		return w.switches(k, func(_ int, up int32) bool {
			return w.proof.avoids(up) && w.proof.bounces[up].proved && w.near.paths[up].size.known == known
		})
	}
	if out := small(false); out != "" {
		list = append(list, fmt.Sprintf("not yet by %s: no packet of full size has come home from there", out))
	}
	if out := small(true); out != "" {
		list = append(list, fmt.Sprintf("not by %s: packets as long as by the others do not come home from there: "+smallerMTU, out))
	}
	if out := w.switches(k, func(i int, _ int32) bool { return r != nil && w.avoidsFar(r, i) }); out != "" {
		list = append(list, fmt.Sprintf("not by %s: packets as long as by the others do not get to the rack from there: "+smallerMTU, out))
	}
	if by >= 0 && level > 0 {
		list = append(list, fmt.Sprintf("of packets up to %d bytes only those up to %d come home by %s: "+smallerMTU,
			w.config.MTU, w.sizes[min(int(level), len(w.sizes)-1)], w.nameOf(by)))
	}
	if out := w.remarkSlow(k, r); out != "" {
		list = append(list, out)
	}
	return strings.Join(list, "; ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", max(d, 0).Seconds()) }
