package join

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"weft/encap"
	"weft/mesh"
)

// Hosts find each other, and agree about keys. They go on while the directory is down, and
// who leaves is gone.
func TestSession_findsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		var hosts []*host
		for i := range 5 {
			hosts = append(hosts, newHost(t, d, i, nil))
		}
		for _, h := range hosts {
			<-h.Ready()
		}
		time.Sleep(5 * time.Second)
		for i, h := range hosts {
			for _, p := range h.now() {
				other := hosts[p.Name[1]-'0']
				theirs := other.now()
				j := slices.IndexFunc(theirs, func(q mesh.Peer) bool { return q.Name == fmt.Sprint("h", i) })
				if j < 0 || *theirs[j].Key != *p.Key || len(p.Accept) > 0 {
					t.Errorf("h%d and %s do not agree", i, p.Name)
				}
			}
			if s := h.Status(); len(h.now()) != 4 || !s.Registered || !s.Following || s.Peers != 4 || s.Why != "" {
				t.Errorf("h%d: %d peers, %+v", i, len(h.now()), s)
			}
		}
		calls := hosts[0].called()
		d.fail(errors.New("no leader"))
		time.Sleep(time.Minute)
		if s := hosts[0].Status(); s.Following || s.Why != "no leader" || len(hosts[0].names()) != 4 || hosts[0].called() != calls {
			t.Errorf("without the directory: %+v, %v", s, hosts[0].names())
		}
		d.fail(nil)
		hosts[4].Close()
		time.Sleep(5 * time.Second)
		if s := hosts[0].Status(); !s.Following || s.Why != "" || !slices.Equal(hosts[0].names(), []string{"h1", "h2", "h3"}) {
			t.Errorf("with it: %+v, %v", s, hosts[0].names())
		}
		for _, h := range hosts[:4] {
			h.Close()
		}
	})
}

// Whoever ends without a word while the directory is away is found out when it is back.
func TestSession_endedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		a, b := newHost(t, d, 1, nil), newHost(t, d, 2, nil)
		<-a.Ready()
		<-b.Ready()
		time.Sleep(5 * time.Second)
		d.fail(errors.New("down"))
		time.Sleep(5 * time.Second)
		b.Close() // nobody hears of it
		d.mu.Lock()
		delete(d.members, "h2")
		d.mu.Unlock()
		if len(a.names()) != 1 {
			t.Error(a.names())
		}
		d.fail(nil)
		time.Sleep(5 * time.Second)
		if len(a.names()) != 0 {
			t.Error(a.names())
		}
		// Its own registration has ended: it comes again.
		d.end("h1")
		time.Sleep(5 * time.Second)
		d.mu.Lock()
		_, ok := d.members["h1"]
		d.mu.Unlock()
		if !ok || !a.Status().Registered {
			t.Errorf("not registered again: %+v", a.Status())
		}
		a.Close()
	})
}

// Keys are renewed, by all at once and each at its own time.
func TestSession_renews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		var hosts []*host
		for i := range 4 {
			hosts = append(hosts, newHost(t, d, i, func(c *Config) { c.Renew = time.Minute }))
		}
		first := map[string]encap.UDPKey{}
		for range 600 {
			time.Sleep(time.Second)
			for i, h := range hosts {
				for _, p := range h.now() {
					for _, q := range hosts[p.Name[1]-'0'].now() {
						if q.Name == fmt.Sprint("h", i) && *q.Key != *p.Key && !slices.Contains(q.Accept, *p.Key) {
							t.Fatalf("%s does not accept what h%d sends", p.Name, i)
						}
					}
					if pair := fmt.Sprint(i, p.Name); first[pair] == (encap.UDPKey{}) {
						first[pair] = *p.Key
					}
				}
			}
		}
		for i, h := range hosts {
			if s := h.Status(); s.Renewed < 7 || s.Renewed > 10 || len(s.Problems) > 0 {
				t.Errorf("h%d: %+v", i, s)
			}
			for _, p := range h.now() {
				if *p.Key == first[fmt.Sprint(i, p.Name)] {
					t.Errorf("h%d and %s have their first key", i, p.Name)
				}
			}
			h.Close()
		}
	})
}

// A peer whose registration has ended stays as long as it is heard, not longer than Linger,
// and not if somebody has what was its own.
func TestSession_lingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		a := newHost(t, d, 1, func(c *Config) { c.Linger = time.Minute })
		var silent atomic.Bool
		go func() {
			for !silent.Load() {
				a.heard.Add(1)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		leaves := func(i int) { newHost(t, d, i, nil).awaitAndClose() }
		leaves(2)
		time.Sleep(30 * time.Second)
		if s := a.Status(); !slices.Equal(a.names(), []string{"h2"}) || s.Lingering != 1 || s.Peers != 1 {
			t.Errorf("heard, and not there: %v, %+v", a.names(), s)
		}
		time.Sleep(32 * time.Second)
		if len(a.names()) != 0 {
			t.Errorf("after a minute: %v", a.names())
		}
		leaves(3)
		time.Sleep(10 * time.Second)
		b := newHost(t, d, 4, func(c *Config) { c.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.0.3/32")} })
		time.Sleep(5 * time.Second)
		if !slices.Equal(a.names(), []string{"h4"}) {
			t.Errorf("its prefix is another one's: %v", a.names())
		}
		b.Close()
		time.Sleep(2 * time.Second)
		silent.Store(true)
		time.Sleep(5 * time.Second)
		if s := a.Status(); len(a.names()) != 0 || s.Lingering != 0 {
			t.Errorf("not heard: %v, %+v", a.names(), s)
		}
		a.Close()
	})
}

// What cannot be is said, and tried again.
func TestSession_troubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemory()
		d.fail(ErrTaken)
		a := newHost(t, d, 1, nil)
		a.mu.Lock()
		a.fail = errors.New("no room")
		a.mu.Unlock()
		time.Sleep(3 * time.Second)
		if s := a.Status(); s.Registered || s.Why != ErrTaken.Error() {
			t.Errorf("%+v", s)
		}
		d.fail(nil)
		b := newHost(t, d, 2, nil)
		time.Sleep(5 * time.Second)
		if s := a.Status(); s.Registered || s.Why != "no room" || s.Peers != 0 {
			t.Errorf("whose tunnel takes no peers is not registered: %+v", s)
		}
		a.mu.Lock()
		a.fail = nil
		a.mu.Unlock()
		time.Sleep(5 * time.Second)
		if s := a.Status(); !s.Registered || s.Peers != 1 {
			t.Errorf("%+v", s)
		}
		// Somebody has the prefix already.
		c := newHost(t, d, 3, func(c *Config) { c.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")} })
		time.Sleep(5 * time.Second)
		if s := a.Status(); len(s.Problems) != 1 || s.Peers != 1 {
			t.Errorf("%+v", s)
		}
		for _, h := range []*host{a, b, c} {
			h.Close()
		}
	})
}

func TestNew_refuses(t *testing.T) {
	key := mesh.NewPrivateKey(0)
	for want, change := range map[string]func(*Config){
		"Directory": func(c *Config) { c.Directory = nil },
		"SetPeers":  func(c *Config) { c.SetPeers = nil },
		"Open":      func(c *Config) { c.Open, c.Cipher, c.Keys = true, encap.UDPGMAC, []mesh.PrivateKey{key} },
		"Renew":     func(c *Config) { c.Renew = -1 },
		"endpoints": func(c *Config) { c.Endpoints = nil },
		"name":      func(c *Config) { c.Name = "" },
	} {
		c := Config{Directory: &of{memory: newMemory()}, Name: "a", SetPeers: (&host{}).set,
			Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
