package daemon

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"weft/internal/bucket"
	"weft/topology/graph"
	"weft/topoupdate/bgp"
	"weft/topoupdate/bgp/session"
)

// bgpLearner is the learner of real sessions. A goroutine of its own makes the fabric of
// what the switches tell, so that the owner never waits for it.
type bgpLearner struct {
	config  *Config // what matters of it does not change
	session *session.Session
	opened  time.Time
	news    chan struct{} // from the sessions
	wake    chan struct{} // of the owner
	stop    chan struct{}
	ended   sync.WaitGroup

	mu     sync.Mutex
	latest views
	err    error
	doubts []string
	made   uint64        // fabrics
	took   time.Duration // to make the latest
}

// Making fabrics takes a tenth of a processor's time in the long run, and a quarter of a
// second of it at once: so a failure after some quiet is not waited with.
const (
	learnShare = 0.1
	learnBurst = 250 * time.Millisecond
)

// effort keeps work to that: each microsecond of it is a token.
func effort() bucket.Bucket {
	return bucket.New(learnShare*1e6, time.Duration(float64(learnBurst)/learnShare))
}

// recheck is how often what does not come from the sessions is looked at: the time that they
// have had, and the host's addresses.
const recheck = time.Second

// learn opens the sessions. The host's router ID is its address, or its first one.
func learn(c *Config) (learner, error) {
	s, err := c.session()
	if err != nil {
		return nil, err
	}
	self, err := session.ThisHost("")
	if err != nil {
		return nil, err
	}
	s.RouterID = c.Address
	for _, a := range self.Addresses {
		if a.Is4() && !s.RouterID.IsValid() {
			s.RouterID = a
		}
	}
	l := &bgpLearner{config: c, opened: time.Now(), news: make(chan struct{}, 1), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	s.Changed = func() { nudge(l.news) }
	if l.session, err = session.Open(s); err != nil {
		return nil, err
	}
	l.err = l.silence()
	l.ended.Go(l.run)
	return l, nil
}

// nudge wakes who waits, if that is not awake yet.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *bgpLearner) changed() <-chan struct{} { return l.wake }

func (l *bgpLearner) Close() error {
	close(l.stop)
	err := l.session.Close()
	l.ended.Wait()
	return err
}

// run makes a fabric of the news, as often as it may.
func (l *bgpLearner) run() {
	every := time.NewTicker(recheck)
	defer every.Stop()
	share := effort()
	var self bgp.Host
	for {
		again := false
		select {
		case <-l.stop:
			return
		case <-l.news:
			again = true
		case <-every.C:
		}
		now, err := session.ThisHost("this-host")
		if !again && l.learned() && reflect.DeepEqual(now, self) {
			continue
		}
		if wait := share.Ready(1) - time.Since(l.opened); wait > 0 {
			select {
			case <-l.stop:
				return
			case <-time.After(wait):
			}
		}
		self = now
		began := time.Now()
		var v views
		var doubts []string
		if err == nil {
			v, doubts, err = l.make(self)
		}
		took := time.Since(began)
		share.TakeWithin(int(took.Microseconds())+1, time.Hour, began.Sub(l.opened))
		l.publish(v, doubts, err, took)
	}
}

func (l *bgpLearner) learned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil
}

func (l *bgpLearner) publish(v views, doubts []string, err error, took time.Duration) {
	l.mu.Lock()
	l.latest, l.err, l.took = v, err, took
	l.made++
	if err == nil {
		l.doubts = doubts
	}
	l.mu.Unlock()
	nudge(l.wake)
}

// fabric returns what the switches tell of now.
func (l *bgpLearner) fabric(*Config) (views, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest, l.err
}

// silence says that too little is known yet; nil if that is not so.
func (l *bgpLearner) silence() error {
	missing, silent := l.session.Missing()
	switch {
	case len(missing) == 0 || len(missing) < len(l.config.BGP.Neighbors) && time.Since(l.opened) > session.Patience:
		return nil
	case len(silent) > 0:
		return fmt.Errorf("%w: no session with %v; does the switch know this host as a neighbor of AS %d?", errUnlearned, silent, l.config.BGP.AS)
	}
	return fmt.Errorf("%w: not all routes have come yet", errUnlearned)
}

// make makes a fabric of what the switches tell, and says what of that is doubtful.
func (l *bgpLearner) make(self bgp.Host) (v views, doubts []string, err error) {
	if err := l.silence(); err != nil {
		return v, nil, err
	}
	spec, doubts := l.session.Spec(self)
	g, err := graph.New(spec)
	if err != nil {
		return v, doubts, fmt.Errorf("%w: %w", errUnlearned, err)
	}
	if v, err = l.config.heardView(g, self.Addresses); err != nil {
		return views{}, doubts, fmt.Errorf("%w: %w", errUnlearned, err)
	}
	return v, doubts, nil
}

// BGPStatus is what the daemon knows of the sessions with the host's switches.
type BGPStatus struct {
	session.Status
	Fabrics uint64   `json:"fabrics"` // made of what was told
	Took    float64  `json:"took_ms"` // to make the latest
	Doubts  []string `json:"doubts,omitempty"`
}

func (l *bgpLearner) status() *BGPStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &BGPStatus{Status: l.session.Status(), Fabrics: l.made, Took: float64(l.took.Microseconds()) / 1000, Doubts: slices.Clone(l.doubts)}
	for _, n := range s.Neighbors {
		if n.Why != "" {
			s.Doubts = append(s.Doubts, n.Why)
		}
	}
	return s
}
