package doctor

import "fmt"

// outcome is what a chain does with a packet.
type outcome int

const (
	passes outcome = iota // or the chain's end is reached
	accepted
	dropped
)

const (
	// mostChains bounds how many chains lead into each other. The kernel allows 16.
	mostChains = 16
	// mostVisits bounds how many rules and values of them are looked at in all.
	mostVisits = 1 << 22
)

// walker follows packets through chains. A packet that a rule may have accepted before, depending
// on addresses or the like, counts as accepted, unless the rule that drops it names the packet's
// protocol or port.
type walker struct {
	chains []Chain
	at     map[[3]string]int // by family, table and name
	left   int               // of mostVisits; below 0 what was found says nothing

	p     packet
	known map[visit]result
}

// visit is a way into a chain.
type visit struct {
	chain int
	maybe bool // the packet may have been accepted before
}

type result struct {
	by      string // the rule that drops
	outcome outcome
	maybe   bool // a rule of the chain may have accepted the packet
}

func newWalker(chains []Chain) *walker {
	w := &walker{chains: chains, at: make(map[[3]string]int), left: mostVisits}
	for i, c := range chains {
		w.at[[3]string{c.Family, c.Table, c.Name}] = i
	}
	return w
}

// begin sets the packet that is followed.
func (w *walker) begin(p packet) { w.p, w.known = p, make(map[visit]result) }

// base follows the packet through a base chain, and says what drops it.
func (w *walker) base(i int) (by string, drops bool) {
	c, r := &w.chains[i], w.chain(visit{i, false}, 0)
	if r.outcome == dropped {
		return r.by, true
	}
	if r.outcome == passes && c.Drops && !r.maybe {
		return fmt.Sprintf("the policy of chain %s of table %s %s is drop", c.Name, c.Family, c.Table), true
	}
	return "", false
}

func (w *walker) chain(v visit, depth int) (out result) {
	if r, known := w.known[v]; known {
		return r
	}
	if depth > mostChains {
		return result{}
	}
	w.known[v] = result{} // the kernel refuses loops
	defer func() { w.known[v] = out }()
	c := &w.chains[v.chain]
	for i := range c.Rules {
		r := &c.Rules[i]
		if w.left -= r.cost(); w.left < 0 {
			return out
		}
		fit, sure, named := r.fits(w.p)
		if !fit {
			continue
		}
		maybe := v.maybe || out.maybe
		switch r.Verdict {
		case "drop", "reject":
			if named || sure && !maybe {
				out.by, out.outcome = fmt.Sprintf("%s, in chain %s of table %s %s", r.Text, c.Name, c.Family, c.Table), dropped
				return out
			}
		case "accept":
			if sure {
				out.outcome = accepted
				return out
			}
			out.maybe = true
		case perhaps:
			out.maybe = true
		case "return":
			if sure {
				return out
			}
			out.maybe = true
		case "jump", "goto":
			to, there := w.at[[3]string{c.Family, c.Table, r.Target}]
			if !there {
				continue
			}
			next := w.chain(visit{to, maybe || !sure && !named}, depth+1)
			if next.outcome == dropped || next.outcome == accepted && sure {
				next.maybe = next.maybe || out.maybe
				return next
			}
			out.maybe = out.maybe || next.maybe || next.outcome == accepted
			if r.Verdict == "goto" {
				if sure {
					return out
				}
				out.maybe = true
			}
		}
	}
	return out
}

// cost is how much there is to look at.
func (r *Rule) cost() int {
	n := 1
	for i := range r.Matches {
		n += 1 + len(r.Matches[i].Values) + len(r.Matches[i].Names)
	}
	return n
}
