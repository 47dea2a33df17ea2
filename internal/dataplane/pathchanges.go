package dataplane

import (
	"net/netip"

	"weft/topology"
)

// maxChanges is how many changes of links are remembered. It is more than a pair in
// use has to look through at once. Looking through all of them takes no longer than
// looking up the paths anew.
const maxChanges = 64

// changeLog is the latest changes of links, in their order. The zero value is
// ready.
type changeLog struct {
	latest    uint64 // number of the latest topology; links that change at once share one
	forgotten uint64 // the latest that is not, or not all, in the list
	list      []change
}

// change is that of a link, or of what is avoided on the way to a host.
type change struct {
	number uint64
	link   topology.LinkID // noLink: of a host
	host   netip.Addr
}

const noLink = topology.LinkID(-1)

// add notes links, and ways to hosts, that have changed at once.
func (l *changeLog) add(links []topology.LinkID, hosts []netip.Addr) {
	l.latest++
	n := len(links) + len(hosts)
	if n > maxChanges {
		l.list, l.forgotten = l.list[:0], l.latest
		return
	}
	if over := len(l.list) + n - maxChanges; over > 0 {
		l.forgotten = l.list[over-1].number
		l.list = l.list[:copy(l.list, l.list[over:])]
	}
	for _, link := range links {
		l.list = append(l.list, change{number: l.latest, link: link})
	}
	for _, host := range hosts {
		l.list = append(l.list, change{l.latest, noLink, host})
	}
}

// since returns the changes after a number; all is false if some are forgotten.
func (l *changeLog) since(number uint64) (links []change, all bool) {
	from := len(l.list)
	for from > 0 && l.list[from-1].number > number {
		from--
	}
	return l.list[from:], number >= l.forgotten
}
