package join

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"weft/mesh"
)

// A directory is restored from a backup in which one host is not there yet, and others have keys that
// they have replaced since. Hosts find out one after the other, at whichever step of their keys. They go
// on accepting what others send, and afterwards all are there and replace their keys.
func TestSession_restored(t *testing.T) {
	for _, signs := range []bool{false, true} {
		for seed := range uint64(25) {
			t.Run(fmt.Sprintf("signed %t, %d", signs, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { restores(t, signs, seed) })
			})
		}
	}
}

func restores(t *testing.T, signs bool, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	d := newMemory()
	var hosts []*host
	begin := func() {
		hosts = append(hosts, newHost(t, d, len(hosts)+1, func(c *Config) {
			c.Renew, c.Linger = 3*time.Second, time.Minute
			c.Heard = func(string) uint64 { return uint64(time.Now().UnixNano()) }
			if signs {
				c.Identity = mesh.NewIdentity()
			}
		}))
	}
	begin()
	begin()
	for _, h := range hosts {
		<-h.Ready()
	}
	time.Sleep(between(r, 0, 5*time.Second))
	members, revision := d.backup()
	begin()
	time.Sleep(between(r, 6*time.Second, 20*time.Second))
	// A host that the directory had lost reads the others' keys before they hear of it again. What it sends
	// until then is lost, and sent again.
	const gap = 300 * time.Millisecond
	began := time.Now()
	since := map[[2]*host]time.Time{} // when what one sent the other one was accepted last
	check := func() {
		t.Helper()
		for _, a := range hosts {
			for _, b := range hosts {
				if pair := [2]*host{a, b}; a == b || accepts(a, b) {
					since[pair] = time.Now()
				} else if at := since[pair]; time.Since(at) > gap && !t.Failed() {
					t.Errorf("%v after the directory was restored %s accepts nothing of %s for %v: %+v, %+v", time.Since(began), b.name, a.name, time.Since(at), b.Status(), a.Status())
				}
			}
		}
	}
	check()
	d.restore(members, revision)
	for _, h := range hosts {
		after := between(r, 0, 4*time.Second)
		go func() { time.Sleep(after); d.findOut(h.name) }()
	}
	for range 3000 {
		time.Sleep(10 * time.Millisecond)
		check()
	}
	var before []uint64
	for _, h := range hosts {
		before = append(before, h.Status().Renewed)
	}
	for range 1500 {
		time.Sleep(10 * time.Millisecond)
		check()
	}
	for i, h := range hosts {
		s := h.Status()
		if s.Renewed == before[i] || !s.Registered || !s.Following || s.Peers != 2 || s.Lingering > 0 || len(s.Problems) > 0 || s.Why != "" {
			t.Errorf("%s replaced %d keys before: %+v", h.name, before[i], s)
		}
		h.Close()
	}
}

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}
