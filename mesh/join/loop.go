package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/mesh"
)

// loop is what a Session's goroutine alone knows.
type loop struct {
	*Session
	view mesh.View
	self mesh.Self

	told       bool            // the directory has told of all members
	stale      bool            // the tunnel has not been given what is known
	registered mesh.Member     // as the directory has it
	put        bool            // registered is what the host is
	readOnly   bool            // others write the directory
	began      time.Time       // the key in use
	peers      []mesh.Peer     // that the tunnel has
	left       []*lingering    // those of peers whose registration has ended
	unkept     string          // why the next keys are not kept
	latest     int64           // the Revision of registered
	stepped    time.Time       // when the keys changed last
	said       map[string]bool // whose Problems the log has
}

// lingering is a peer whose registration has ended.
type lingering struct {
	mesh.Peer
	until  time.Time
	heard  uint64
	silent int // looks in a row at which nothing had been heard
}

// run is the goroutine.
func (l *loop) run(ctx context.Context) {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	l.began, l.stepped = time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-l.broken:
			l.lost(err)
			continue
		case u := <-l.news:
			l.take(u)
			l.takeMore(ctx)
		case <-tick.C:
			l.look()
			l.renew()
		}
		l.apply()
		l.register(ctx)
	}
}

// takeMore takes what comes at about the same time: peers are found out once for all of it.
func (l *loop) takeMore(ctx context.Context) {
	until := time.After(settle)
	for {
		select {
		case <-ctx.Done():
			return
		case <-until:
			return
		case u := <-l.news:
			l.take(u)
		}
	}
}

// take takes news of the directory.
func (l *loop) take(u Update) {
	if u.All {
		l.view.Replace(u.Put)
		l.told = true
		l.put = l.put && (l.readOnly || l.view.Has(l.c.Name))
	} else {
		for _, m := range u.Put {
			l.view.Put(m)
		}
	}
	for _, m := range u.Put {
		if m.Name == l.c.Name && !l.readOnly {
			l.takeOwn(&m)
		}
	}
	for _, name := range u.Gone {
		l.view.Delete(name)
		l.put = l.put && name != l.c.Name
	}
	l.stale = true
	l.update(func(s *Status) {
		s.Members += uint64(len(u.Put) + len(u.Gone))
		s.Following = true
		s.Refused = l.view.Refused()
		if s.Registered && !l.readOnly {
			s.Why = ""
		}
	})
}

// takeOwn takes the host's own registration, as the directory has it. One that has been
// written though the answer was lost is the first with its keys. One that is not the host's
// somebody else has written: it is written again.
func (l *loop) takeOwn(m *mesh.Member) {
	own := l.member(&l.c)
	if !slices.Equal(m.Keys, own.Keys) {
		if l.put && m.Revision > l.latest {
			l.put = false
			l.log.Warn("registration overwritten", "name", m.Name)
		}
		return
	}
	for i := range l.self.Keys {
		k := &l.self.Keys[i]
		if k.Announced == 0 || m.Revision < k.Announced {
			k.Announced = m.Revision
		}
		if i == 0 && (k.InUse == 0 || m.Revision < k.InUse) {
			k.InUse = m.Revision
		}
	}
}

// lost takes note that the directory tells nothing any more. The registration may have ended.
func (l *loop) lost(err error) {
	l.put = l.put && l.readOnly
	l.update(func(s *Status) {
		if s.Following {
			l.log.Warn("directory lost", "why", err)
		}
		s.Following, s.Why = false, reason(err)
	})
}

func reason(err error) string {
	if err == nil {
		return "the directory has ended"
	}
	return err.Error()
}

func (l *loop) update(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

// apply gives the tunnel its peers, if there is something new.
func (l *loop) apply() {
	if !l.told || !l.stale {
		return
	}
	peers, problems := l.self.Peers(&l.view)
	l.linger(peers)
	registered := len(peers)
	for _, p := range l.left {
		peers = append(peers, p.Peer)
	}
	err := l.c.SetPeers(slices.Clone(peers)) // who gets them may keep them
	l.update(func(s *Status) {
		if err != nil {
			s.Why = err.Error()
			return
		}
		s.Peers, s.Lingering = len(peers), len(peers)-registered
		if l.readOnly {
			s.Why = l.unlisted()
		}
		s.Problems = problems
	})
	l.warn(problems)
	if err != nil {
		l.log.Error("peers not taken", "why", err)
		return // again with the next tick
	}
	l.peers, l.stale = peers, false
	l.isReady()
}

// unlisted says why others do not know the host as it is, if the directory is a list.
func (l *loop) unlisted() string {
	m, ok := l.view.Member(l.c.Name)
	own := l.member(&l.c)
	switch {
	case !ok:
		return fmt.Sprintf("the directory does not name %q: write there what this host is", l.c.Name)
	case !slices.Equal(m.Keys, own.Keys):
		return fmt.Sprintf("the directory has another key of %q than %v", l.c.Name, own.Keys)
	case l.c.Renew > 0:
		return "keys are not renewed: this host cannot write the directory"
	}
	return ""
}

// warn logs the problems that are new, by name: whoever registers something else each time
// is named once as long as there is trouble with the name.
func (l *loop) warn(problems []mesh.Problem) {
	said := make(map[string]bool, len(problems))
	for _, p := range problems {
		if !l.said[p.Name] && !said[p.Name] {
			l.log.Warn("registration does not count", "name", p.Name, "why", p.What)
		}
		said[p.Name] = true
	}
	l.said = said
}

func (l *loop) isReady() {
	if l.put && l.told && !l.stale {
		select {
		case <-l.ready:
		default:
			close(l.ready)
		}
	}
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
	n := len(l.left)
	l.left = slices.DeleteFunc(l.left, func(p *lingering) bool {
		if heard := l.c.Heard(p.Name); heard != p.heard {
			p.heard, p.silent = heard, 0
		} else {
			p.silent++
		}
		return p.silent >= silence || now.After(p.until)
	})
	if len(l.left) < n {
		for i := len(l.peers) - 1; i >= 0; i-- { // else they would begin to linger anew
			if l.gone(l.peers[i].Name) {
				l.peers = slices.Delete(l.peers, i, i+1)
			}
		}
		l.stale = true
	}
}

// gone reports whether a peer is neither registered nor lingering.
func (l *loop) gone(name string) bool {
	return !l.view.Has(name) && !slices.ContainsFunc(l.left, func(p *lingering) bool { return p.Name == name })
}

// member is what the host is.
func (l *loop) member(c *Config) mesh.Member {
	m := mesh.Member{Name: c.Name, Endpoints: c.Endpoints, Prefixes: c.Prefixes, Seen: l.view.Seen()}
	for _, k := range l.self.Keys {
		m.Keys = append(m.Keys, k.Public())
	}
	return m
}

// register tells the directory what the host is, if it does not know. What the host has seen
// it tells once its tunnel has the peers that follow. It is not registered before, as others do
// not forget a key as long as somebody is registered who has not seen the next one.
func (l *loop) register(ctx context.Context) {
	m := l.member(&l.c)
	switch begins := l.registered.Name == ""; {
	case begins && (l.stale || !l.told):
		return
	case l.stale:
		m.Seen = l.registered.Seen
	}
	if l.put && m.Seen <= l.registered.Seen && slices.Equal(m.Keys, l.registered.Keys) {
		return
	}
	once, cancel := context.WithTimeout(ctx, maxPatient)
	defer cancel()
	revision, err := l.c.Directory.Put(once, m)
	if errors.Is(err, ErrReadOnly) {
		l.readOnly, err = true, nil
	}
	if err != nil {
		l.update(func(s *Status) {
			if s.Registered || s.Why == "" {
				l.log.Warn("not registered", "why", err)
			}
			s.Registered, s.Why = false, err.Error()
		})
		l.put = false
		return
	}
	for i := range l.self.Keys {
		k := &l.self.Keys[i]
		if k.Announced == 0 {
			k.Announced = revision
		}
		if i == 0 && k.InUse == 0 {
			k.InUse = revision
		}
	}
	l.registered, l.put, l.latest = m, true, revision
	l.update(func(s *Status) {
		switch s.Registered = true; {
		case l.readOnly:
			s.Why = l.unlisted()
		case s.Following:
			s.Why = ""
		}
	})
	l.isReady()
}
