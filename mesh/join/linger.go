package join

import (
	"slices"
	"time"

	"weft/mesh"
)

// lingering is a peer whose registration has ended.
type lingering struct {
	mesh.Peer
	until  time.Time
	heard  uint64
	silent int // looks in a row at which nothing had been heard
}

// linger finds the peers whose registration has ended and that are to stay, given those that
// are registered. A peer whose name or prefixes somebody has now does not stay.
func (l *loop) linger(registered []mesh.Peer) {
	if l.c.Linger == 0 || l.c.Heard == nil {
		return
	}
	stays := func(p *mesh.Peer) bool {
		if l.view.Has(p.Name) {
			return false
		}
		for i := range registered {
			for _, prefix := range p.Prefixes {
				if slices.ContainsFunc(registered[i].Prefixes, prefix.Overlaps) {
					return false
				}
			}
		}
		return true
	}
	l.left = slices.DeleteFunc(l.left, func(p *lingering) bool { return !stays(&p.Peer) })
	for i := range l.peers {
		p := &l.peers[i]
		if stays(p) && !slices.ContainsFunc(l.left, func(q *lingering) bool { return q.Name == p.Name }) {
			l.left = append(l.left, &lingering{Peer: *p, until: time.Now().Add(l.c.Linger), heard: l.c.Heard(p.Name)})
		}
	}
}

// silence is after how many looks without a datagram a lingering peer goes.
const silence = 3

// look has peers go that have lingered for long enough, or are not heard.
func (l *loop) look() {
	now := time.Now()
	var ended []string
	l.left = slices.DeleteFunc(l.left, func(p *lingering) bool {
		if heard := l.c.Heard(p.Name); heard != p.heard {
			p.heard, p.silent = heard, 0
		} else {
			p.silent++
		}
		ends := p.silent >= silence || now.After(p.until)
		if ends {
			ended = append(ended, p.Name)
		}
		return ends
	})
	if len(ended) > 0 { // else they would begin to linger anew
		l.peers = slices.DeleteFunc(l.peers, func(p mesh.Peer) bool { return slices.Contains(ended, p.Name) })
		l.stale = true
	}
}
