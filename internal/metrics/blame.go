package metrics

import (
	"fmt"
	"strings"
)

// MaxBlamed is how many of the places that are blamed have series of their own: the worst.
const MaxBlamed = 16

// maxNames is how many places are named that no path tells apart.
const maxNames = 3

var (
	blamedPlaces = gauge("weft_blamed_places", "Places of the fabric that hurt packets now, as weft blame lists them, by what they are. One that may be several counts as the first.", "kind")
	blamedLoss   = gauge("weft_blamed_loss_ratio", "Share of the packets that a place loses which weft blame lists, of the worst ones; 0 if only probes speak against it. family is left empty if IPv4 and IPv6 packets both tell.", "place", "kind", "family")
	lateCut      = gauge("weft_late_cut_active", "1 if super-segments are cut at the uplink's egress, 0 if TCP cuts them, which costs more processor time. Only in mode offload with a policy of packets.")
)

// Blamed is what hurts packets: a link, a switch or a host, or several of which one does.
type Blamed struct {
	Places, Kinds []string
	Family        string
	Loss          float64
}

// Blame writes what is blamed, which comes with the worst first.
func (w Writer) Blame(all []Blamed) {
	n := map[string]int{"link": 0, "switch": 0, "host": 0}
	type labels struct{ place, kind, family string }
	written := make(map[labels]bool)
	for _, b := range all {
		if len(b.Places) == 0 || len(b.Kinds) == 0 {
			continue
		}
		kind := b.Kinds[0]
		n[kind]++
		l := labels{placesText(b.Places), kind, b.Family}
		if len(written) < MaxBlamed && !written[l] {
			written[l] = true
			w.put(blamedLoss, b.Loss, l.place, l.kind, l.family)
		}
	}
	for kind, n := range n {
		w.put(blamedPlaces, float64(n), kind)
	}
}

func placesText(names []string) string {
	text := strings.Join(names[:min(len(names), maxNames)], " or ")
	if n := len(names) - maxNames; n > 0 {
		text += fmt.Sprintf(" or %d more", n)
	}
	return text
}

// LateCut writes whether super-segments are cut late.
func (w Writer) LateCut(active bool) { w.truth(lateCut, active) }
