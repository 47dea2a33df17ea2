package liveness

import (
	"net/netip"
	"time"

	"weft/encap"
)

// Probe is a packet to send: Append's bytes, in IP-in-IP from the host to Via, or with
// the labels that Labels.Of returns.
type Probe struct {
	Via  netip.Addr // the bouncing address: the outer destination
	Path int        // number of the path for the pair; of a boomerang, that of a path with the same switch
	From int        // the host's uplink that the path begins with (topology.PathSet.From)
	Dst  netip.Addr // a host, as in topology.HostAt; Self for a boomerang
	body encap.Probe
}

// Len returns the length of the whole inner packet in bytes: that of encap.ProbeLenFrom, or
// more for a full-size probe.
func (p *Probe) Len() int { return p.body.Len() }

// Append appends the whole inner packet, Len bytes.
func (p *Probe) Append(b []byte) []byte {
	// The addresses are a host's, so nothing can be wrong with them.
	b, _ = encap.AppendProbe(b, p.body)
	return b
}

// Kind tells boomerangs from requests.
func (p *Probe) Kind() encap.ProbeKind { return p.body.Kind }

// Probes passes each probe that is due to f. Call it right after Tick; a delay makes the
// measured round trips too long (see Away). f must not call the Watcher, nor keep p.
func (w *Watcher) Probes(f func(p *Probe)) {
	for i := range w.out {
		f(&w.out[i])
	}
	w.out = w.out[:0]
}

// send awaits the answer to a probe and queues it.
func (w *Watcher) send(p *path) (i int32, ok bool) {
	i, ok = w.awaited.add(p, w.rng.Uint64(), w.now, w.now+p.timeout(&w.config))
	if !ok {
		w.stats.Skipped++
		return nowhere, false
	}
	w.stats.Sent++
	w.awaited.ring[i].sample = p.sample(w.now, w.config.Interval)
	w.queue(p, i, 0)
	return i, true
}

// queue has a probe sent that is awaited.
func (w *Watcher) queue(p *path, i int32, padding int) {
	g := p.group
	w.awaited.ring[i].stalls = w.stats.Stalls
	near := &w.near.paths[p.up]
	probe := Probe{Via: near.via, From: int(near.from), Path: int(p.index), Dst: g.dst, body: encap.Probe{
		Kind: encap.ProbeRequest, Path: uint16(p.index), Token: w.awaited.ring[i].token,
		Origin: w.config.Address, Target: g.address,
		Carrier: w.config.Carrier, Padding: padding, AsData: w.awaited.ring[i].asData,
	}}
	if g == &w.near {
		probe.body.Kind = encap.Boomerang
	} else if !w.base.Computed() {
		probe.body.Via = probe.Via
		if probe.Via.Is4() {
			probe.body.Padding = max(padding, probe.Via.BitLen()/8)
		}
	}
	w.stats.Bytes += uint64(probe.Len() + w.config.overhead())
	w.out = append(w.out, probe)
}

// Answer takes a boomerang that came home, or a peer's reply: the whole inner packet,
// which it does not keep. Any other bytes are counted and ignored. It allocates nothing.
func (w *Watcher) Answer(packet []byte, now time.Duration) {
	w.at(now)
	b, err := encap.ParseProbe(packet)
	if err != nil || b.Kind == encap.ProbeRequest || b.Origin != w.config.Address {
		w.stats.Unknown++
		return
	}
	// The kind and the addresses must be those sent with the token, even though only a
	// node that saw the probe knows the token.
	e := &w.awaited.ring[b.Token&w.awaited.mask]
	if e.token != b.Token || e.path == nil || e.path.group.gone ||
		(b.Kind == encap.Boomerang) != (e.path.group == &w.near) {
		w.stats.Unknown++
		return
	}
	was, _ := w.awaited.take(b.Token)
	if was.size == 0 && !was.settled {
		was.path.lately.add(w.now, 1, 0)
	}
	if was.asData {
		w.waited(was.path, &was)
		return
	}
	if was.size > 0 {
		if b.Padding > 0 && !was.missed {
			w.cameHome(was.path, was.sent)
			w.fullHome(was.path, was.size-1)
		}
		return
	}
	if was.missed {
		w.stats.Late++
	} else {
		w.stats.Answered++
	}
	w.answered(was.path, &was)
}

// answered is told of a probe that came home, in time or late.
func (w *Watcher) answered(p *path, e *await) {
	g := p.group
	if w.contested && p.misses > 0 {
		w.dirty = true // it may contradict now
	}
	if e.stalls == w.stats.Stalls { // else it has waited for this process
		p.measured(max(w.now-e.sent, 1))
	}
	g.answered = max(g.answered, e.sent)
	if g.mute || g.silent >= missedByAll {
		w.lookAgain(w.now)
	}
	g.silent = 0
	w.cameHome(p, e.sent)
	if g.mute {
		w.unmute(g)
	}
	p.answered = max(p.answered, e.sent)
	if e.missed {
		// It was not lost after all, so one miss less.
		if e.sample {
			p.history &= p.history - 1
		}
		if e.sent >= p.accused {
			p.misses, p.convicts = 0, 0
		}
	} else {
		if e.sample {
			p.record(0)
		}
		p.goods = min(p.goods+1, 1<<14)
		if e.sent >= p.accused {
			p.misses, p.convicts = 0, 0
		}
	}
	if p.cause != fine {
		w.consider(p)
	}
}

// expired is told of a probe whose answer did not come in time.
func (w *Watcher) expired(i int32) {
	e := &w.awaited.ring[i]
	p := e.path
	if e.missed {
		w.settle(p, e)
		return
	}
	e.missed = true
	if e.size == 0 {
		w.awaited.late.Add(w.now+maxTimeout, i)
	}
	if e.asData {
		return // lost or waiting: both are data's lot, too
	}
	if e.size > 0 {
		w.fullMissed(p, e)
		return
	}
	if p.group.gone || p.down {
		return
	}
	g := p.group
	w.stats.Missed++
	if p.tally != nil {
		p.tally.Missed++
	}
	if g.silent++; g.silent == 1 {
		g.quiet = e.sent
	}
	if g == &w.near {
		w.stayedOut(p, e.sent)
	}
	w.silence(g)
	w.quiet(g)
	if g != &w.near && w.near.paths[p.up].cause != fine {
		return // it did not get as far as the path's other half
	}
	if e.sample {
		p.record(1)
	}
	p.goods = 0
	if p.answered > e.sent {
		return // alive: a later one came home
	}
	if p.misses++; p.misses == 1 || e.sent < p.accused {
		p.accused = e.sent
	}
	if w.contested && p.misses == 1 {
		w.dirty = true // it does not contradict any more
	}
	if p.misses == 1 || e.sent > p.silentAt {
		p.silentAt = e.sent
	}
	if w.awaited.beside(e) {
		if p.convicts++; p.convicts == 1 || e.sent < p.convicted {
			p.convicted = e.sent
		}
	}
	p.misses, p.convicts = min(p.misses, 1<<14), min(p.convicts, 1<<14)
	if g.mute || p.cause != fine {
		return
	}
	if w.judge(p); p.cause == fine && p.misses == 1 {
		w.hurry(p)
	}
}

// settle counts a probe as lost that was missed and did not come home late either. If nobody
// has answered since it was sent, the peer may be gone, which says nothing of the path.
func (w *Watcher) settle(p *path, e *await) {
	e.settled = true
	if g := p.group; !g.gone && !p.down && g.answered >= e.sent {
		p.lately.add(w.now, 1, 1)
	}
}

// hurry has a path probed at once, and the near half of it.
func (w *Watcher) hurry(p *path) {
	w.wake(p, 0)
	w.clear(p)
}

// clear makes the near half of a path be probed as if it were suspicious, until it is
// known which half is at fault.
func (w *Watcher) clear(p *path) {
	n := &w.near.paths[p.up]
	if n == p || n.cause != fine || n.down || w.unprobed(&w.near) || n.answered >= p.accused && n.misses == 0 {
		return
	}
	n.alert = max(n.alert, w.now+w.config.urgent())
	w.wake(n, 0)
}
