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
	putting    bool            // the directory has not answered yet
	unanswered int             // Puts in a row that were given up
	doubtful   bool            // what it will answer: the registration has ended since
	answers    chan answer     // to that
	readOnly   bool            // others write the directory
	began      time.Time       // the key in use
	peers      []mesh.Peer     // that the tunnel has
	left       []*lingering    // those of peers whose registration has ended
	unkept     string          // why the next keys are not kept
	latest     int64           // the Revision of registered
	stepped    time.Time       // when the keys changed last
	said       map[string]bool // whose Problems the log has
	again      time.Time       // before which the host does not try to register again
	tells      time.Time       // when the directory is told what the host has seen; zero: nothing is new
	rests      time.Time       // until when the tunnel is not given other peers
	serial     int64           // of the last registration that was signed
	settles    time.Time       // when what a restored directory has counts, though it was known better; zero: never
	overwrites int             // how often somebody else has written over the registration lately
	overwrote  time.Time       // the last time
	unkeptPins map[string]mesh.PublicIdentity
	pinsKept   time.Time // when unkeptPins were kept last
	pinsLooked time.Time
	unpinned   string // why pins are not kept
}

// run is the goroutine.
func (l *loop) run(ctx context.Context) {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	l.began, l.stepped = time.Now(), time.Now()
	for {
		var wake <-chan time.Time
		if at := l.wakes(); !at.IsZero() {
			wake = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			l.keepFresh(true)
			return
		case <-wake:
		case err := <-l.broken:
			l.lost(err)
			continue
		case a := <-l.answers:
			l.answered(a)
		case u := <-l.news:
			l.take(u)
			l.takeMore(ctx)
		case <-tick.C:
			l.look()
			l.settle()
			l.renew()
			l.keepPins()
		}
		l.apply()
		l.register(ctx)
	}
}

// wakes is when there is something to do before the next tick; the zero Time: there is not.
func (l *loop) wakes() (at time.Time) {
	if l.told && l.stale {
		at = l.rests
	}
	if tells := l.tells; !tells.IsZero() && !l.putting {
		if tells.Before(l.again) {
			tells = l.again
		}
		if at.IsZero() || tells.Before(at) {
			at = tells
		}
	}
	return at
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
	if u.Restored {
		l.renumber()
	}
	if u.All {
		l.view.Replace(u.Put)
		l.told = true
		if !l.readOnly && !l.view.Has(l.c.Name) {
			l.unregistered()
		}
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
		if l.view.Delete(name); name == l.c.Name {
			l.unregistered()
		}
	}
	l.stale = true
	l.update(func(s *Status) {
		s.Updates += uint64(len(u.Put) + len(u.Gone))
		s.Following = true
		s.Refused = l.view.Refused()
		if s.Registered && !l.readOnly {
			s.Why = l.contested()
		}
	})
}

// lost takes note that the directory tells nothing any more. Whether the registration is still
// there is found out when the directory tells of all members, if it does not say that it has ended:
// all hosts lose the directory at once, and need not all register again.
func (l *loop) lost(err error) {
	if errors.Is(err, ErrEnded) {
		l.unregistered()
	}
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

// The tunnel is left alone for rest times as long as giving it its peers took: whoever registers again and
// again does not take the processor. It is maxRest at most, as on a busy machine it is others that take long.
const (
	rest    = 10
	maxRest = 2 * time.Second
)

// apply gives the tunnel its peers, if there is something new.
func (l *loop) apply() {
	began := time.Now()
	if !l.told || !l.stale || began.Before(l.rests) {
		return
	}
	peers, problems := l.self.Peers(&l.view)
	l.linger(peers)
	registered := len(peers)
	for _, p := range l.left {
		peers = append(peers, p.Peer)
	}
	err := l.c.SetPeers(slices.Clone(peers)) // who gets them may keep them
	if l.rests = time.Now().Add(min(rest*time.Since(began), maxRest)); err != nil {
		l.rests = time.Now().Add(retry)
	}
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
		return // again after retry
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
