package join

import (
	"context"
	"errors"
	"slices"
	"time"

	"weft/mesh"
)

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
	if l.put && slices.Equal(m.Keys, l.registered.Keys) {
		if m.Seen <= l.registered.Seen {
			l.tells = time.Time{}
			return
		}
		// All hosts see a key at once. They do not all say so at once, as each reads what each says.
		if l.tells.IsZero() {
			l.tells = time.Now().Add(jitter(spread(len(l.peers))))
		}
		if time.Now().Before(l.tells) {
			return
		}
	}
	if l.putting || time.Now().Before(l.again) {
		return
	}
	l.tells = time.Time{}
	if !l.c.Identity.IsZero() {
		l.serial = max(time.Now().UnixNano(), l.serial+1)
		if former, ok := l.view.Member(l.c.Name); ok && former.Identity == l.c.Identity.Public() {
			l.serial = max(l.serial, former.Serial+1) // the clock may have gone back
		}
		m.Serial = l.serial
		if err := m.Sign(l.c.Identity); err != nil {
			l.update(func(s *Status) { s.Why = err.Error() })
			return
		}
	}
	l.putting = true
	patience := min(minPatient<<min(l.unanswered, 8), maxPatient)
	l.ended.Go(func() {
		once, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		revision, err := l.c.Directory.Put(once, m)
		l.answers <- answer{m, revision, err}
	})
}

// unregistered takes note that the registration has ended, or may have.
func (l *loop) unregistered() { l.put, l.doubtful = false, l.putting }

// answer is a directory's to a Put.
type answer struct {
	mesh.Member
	revision int64
	err      error
}

// answered takes note of what the directory knows of the host.
func (l *loop) answered(a answer) {
	doubtful := l.doubtful
	l.putting, l.doubtful = false, false
	m, revision, err := a.Member, a.revision, a.err
	if l.unanswered++; !errors.Is(err, context.DeadlineExceeded) {
		l.unanswered = 0
	}
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
		l.again = time.Now().Add(jitter(spread(len(l.peers))))
		return
	}
	if doubtful {
		return // it is registered again
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
			s.Why = l.contested()
		}
	})
	l.isReady()
}

// overwritten takes note that somebody else has registered by the host's name. The registration is written
// again: at once the first time, and later each time as long as this goes on.
func (l *loop) overwritten(name string) {
	now := time.Now()
	if now.Sub(l.overwrote) > maxSpread {
		l.overwrites = 0
	}
	if l.overwrites++; l.overwrites > 1 {
		wait := min(retry<<min(l.overwrites-2, 8), maxPatient)
		l.again = now.Add(wait/2 + jitter(wait))
	}
	l.put, l.overwrote = false, now
	l.log.Warn("registration overwritten", "name", name)
}

// contested says that somebody goes on writing over the registration.
func (l *loop) contested() string {
	if l.overwrites < 2 || time.Since(l.overwrote) > maxSpread {
		return ""
	}
	return "this host's registration is written over again and again: another host has its name, or its files (a copied machine: remove the private key's file and the identity's there), or somebody else may write it in the directory"
}

// takeOwn takes the host's own registration, as the directory has it. One that has been
// written though the answer was lost is the first with its keys. One that is not the host's
// somebody else has written: it is written again.
func (l *loop) takeOwn(m *mesh.Member) {
	own := l.member(&l.c)
	if !slices.Equal(m.Keys, own.Keys) || !slices.Equal(m.Endpoints, own.Endpoints) || !slices.Equal(m.Prefixes, own.Prefixes) || m.Identity != l.c.Identity.Public() {
		if l.put && m.Revision > l.latest {
			l.overwritten(m.Name)
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
