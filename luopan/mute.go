package luopan

import "time"

const (
	// maxMute is the longest time for which a host that never answers is left alone. So it
	// is also how long it may take to notice that the host has begun to run weft.
	maxMute = 16 * time.Second
	// onceRounds is how many rounds in a row a host that has answered before may be silent
	// without being left alone: its paths or the host may have died, and return.
	onceRounds = 60
	// maxMutes bounds the hosts that are remembered as silent.
	maxMutes = 4096
)

// mutes remembers hosts that were silent when last asked. Such a host may run no weft and
// answer each probe with an ICMP error. Its kernel may send this host at most one ICMP
// error a second (Linux: net.ipv4.icmp_ratelimit), and other programs need some of them.
// mutes keeps a host even when its rack is forgotten. The zero value is empty.
type mutes struct {
	hosts map[uint32]mute
	ring  []uint32 // all of these, the oldest to be forgotten next
	next  int
}

type mute struct {
	rounds uint8         // without an answer, in a row
	once   bool          // it had answered before
	until  time.Duration // when it may be asked again
}

// silent notes a round without an answer that began at began. once says whether the host
// has ever answered. From began on the host is left alone, longer each time.
func (m *mutes) silent(host uint32, once bool, began time.Duration) {
	is, known := m.hosts[host]
	if !known {
		m.remember(host)
		is.once = once
	}
	is.rounds = min(is.rounds+1, onceRounds+32)
	rounds := int(is.rounds)
	if is.once {
		rounds -= onceRounds
	}
	is.until = began
	if rounds > 0 {
		is.until += min(firstPatience<<min(rounds-1, 16), maxMute)
	}
	m.hosts[host] = is
}

// remember makes room for a host.
func (m *mutes) remember(host uint32) {
	if m.hosts == nil {
		m.hosts = make(map[uint32]mute)
	}
	if len(m.ring) < maxMutes {
		m.ring = append(m.ring, host)
		return
	}
	delete(m.hosts, m.ring[m.next])
	m.ring[m.next] = host
	m.next = (m.next + 1) % maxMutes
}

// answered forgets that a host was silent.
func (m *mutes) answered(host uint32) { delete(m.hosts, host) }

// Heard says that a probe of another host has come in, so that host runs weft. It may be
// asked at once even if it has been silent. dst and host are as in Choose. Heard
// allocates nothing.
func (t *Table) Heard(dst, host uint32, now time.Duration) {
	now = t.tell(now)
	is, known := t.mutes.hosts[host]
	if !known || is.until <= now {
		return
	}
	is.until = now
	t.mutes.hosts[host] = is
	if slot := t.find(dst); slot != nowhere && t.destinations[slot].resting {
		t.dueAt(slot, now)
	}
}

// willing returns the next host of a rack in turn that may be asked. If there is none
// yet, ready is when there will be.
func (t *Table) willing(d *destination, now time.Duration) (host uint32, ready time.Duration) {
	ready = Never
	for range d.nHosts {
		host = d.hosts[d.turn%d.nHosts]
		d.turn = (d.turn + 1) % d.nHosts
		is := t.mutes.hosts[host]
		if is.until <= now {
			return host, now
		}
		ready = min(ready, is.until)
	}
	return 0, ready
}
