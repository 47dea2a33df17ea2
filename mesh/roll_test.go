package mesh

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/encap"
)

// rolling is a host of TestKeys_rollWithoutLoss.
type rolling struct {
	self  Self
	view  View
	joins int // the step at which it registers
	at    int // events of the directory that it has read
	keys  int // that it has had
	since int64
	peers []Peer
	away  int // steps for which it does not reach the directory
}

// Hosts replace their keys at any time, and learn of others late and at different times, or
// for long not at all. At each moment a host that another one knows accepts the key that
// the other one sends by.
func TestKeys_rollWithoutLoss(t *testing.T) {
	rolled, sentByFormer := 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var log []Member // all registrations, in their order; the revision is the index + 1
		hosts := make([]*rolling, 5)
		put := func(i int) int64 {
			h := hosts[i]
			m := member(h.self.Name, i)
			for _, k := range h.self.Keys {
				m.Keys = append(m.Keys, k.Public())
			}
			m.Seen, m.Revision, m.Since = h.view.Seen(), int64(len(log)+1), h.since
			if h.since == 0 {
				m.Since, h.since = m.Revision, m.Revision
			}
			log = append(log, m)
			return m.Revision
		}
		next := func(i int) OwnKey {
			h := hosts[i]
			h.keys++
			return OwnKey{PrivateKey: keyOf(uint8(h.keys%Generations), i<<8|h.keys%256)}
		}
		for i := range hosts {
			hosts[i] = &rolling{self: Self{Name: fmt.Sprint("h", i), Cipher: encap.UDPAESGCM}}
			hosts[i].joins = i * r.IntN(400)
		}
		for step := range 3000 {
			i := r.IntN(len(hosts))
			h := hosts[i]
			if step < h.joins {
				continue
			}
			if len(h.self.Keys) == 0 {
				h.self.Keys = []OwnKey{next(i)}
				h.self.Keys[0].Announced = put(i)
			}
			if h.away > 0 && h.at > 0 {
				h.away--
				continue
			}
			switch r.IntN(8) {
			case 0:
				h.away = r.IntN(30)
			case 1: // the next step of a key
				switch k := h.self.Keys; {
				case len(k) == 1:
					h.self.Keys = append(slices.Clone(k), next(i))
					h.self.Keys[1].Announced = put(i)
				case k[1].Announced > k[0].Announced:
					h.self.Keys = []OwnKey{k[1], k[0]}
					h.self.Keys[0].InUse = put(i)
				case h.view.AllHaveSeen(h.self.Name, k[0].InUse):
					h.self.Keys = k[:1:1]
					put(i)
					rolled++
				}
				h.peers, _ = h.self.Peers(&h.view)
			default: // it reads some of the directory
				seen := h.view.Seen()
				n := r.IntN(1 + len(log) - h.at)
				if h.at == 0 { // it has registered, and reads all that there is
					n = len(log)
				}
				for ; n > 0; n-- {
					h.view.Put(log[h.at])
					h.at++
				}
				var problems []Problem
				if h.peers, problems = h.self.Peers(&h.view); len(problems) > 0 {
					t.Fatalf("seed %d, step %d: %v", seed, step, problems)
				}
				if h.view.Seen() > seen {
					put(i)
				}
			}
			for j, to := range hosts {
				for _, p := range h.peers {
					if p.Name != to.self.Name || j == i {
						continue
					}
					k := slices.IndexFunc(to.peers, func(q Peer) bool { return q.Name == h.self.Name })
					if k < 0 {
						continue // it does not know the sender yet
					}
					q := &to.peers[k]
					if *p.Key != *q.Key && !slices.Contains(q.Accept, *p.Key) {
						t.Fatalf("seed %d, step %d: %s sends to %s by key %x, which is none of %x and %d others", seed, step, h.self.Name, p.Name, p.Key.ID, q.Key.ID, len(q.Accept))
					}
					if len(q.Accept) >= encap.MaxUDPKeys {
						t.Fatalf("%d keys besides one", len(q.Accept))
					}
					ids := map[uint8]bool{q.Key.ID: true}
					for _, a := range q.Accept {
						if ids[a.ID] {
							t.Fatalf("seed %d: two keys have ID %x", seed, a.ID)
						}
						ids[a.ID] = true
					}
					if k := h.self.Keys; len(k) == 2 && k[1].Announced < k[0].Announced && h.view.members[p.Name].Seen < k[0].Announced {
						sentByFormer++
					}
				}
			}
		}
	}
	if rolled < 100 || sentByFormer < 100 {
		t.Errorf("only %d keys were replaced, and former ones used %d times", rolled, sentByFormer)
	}
}

// A host alone replaces its key, as the others say that they know.
func TestKeys_oneRolls(t *testing.T) {
	var revision int64
	views := [2]*View{{}, {}}
	put := func(name string, n int, seen int64, keys ...PrivateKey) int64 {
		revision++
		m := member(name, n)
		for _, k := range keys {
			m.Keys = append(m.Keys, k.Public())
		}
		m.Seen, m.Revision, m.Since = seen, revision, int64(n)
		for _, v := range views {
			v.Put(m)
		}
		return revision
	}
	cur, next, other := keyOf(1, 1), keyOf(2, 2), keyOf(0, 3)
	put("a", 1, 0, cur)
	if v := views[0]; !v.AllHaveSeen("a", 1) || v.AllHaveSeen("a", 2) || v.AllHaveSeen("x", 1) {
		t.Error("alone, it waits for others, or not for the directory")
	}
	put("b", 2, 0, other)
	announced := put("a", 1, 0, cur, next)
	for step, keys := range [][]PrivateKey{{next, cur}, {next}} {
		if views[0].AllHaveSeen("a", announced) {
			t.Errorf("step %d: all have seen what b has not", step)
		}
		put("b", 2, views[1].Seen(), other)
		if !views[0].AllHaveSeen("a", announced) {
			t.Errorf("step %d: b has seen %d of %d", step, views[1].Seen(), announced)
		}
		announced = put("a", 1, 0, keys...)
	}
	if before := views[1].Seen(); put("a", 1, 0, next) <= before || views[1].Seen() != before {
		t.Error("the same keys again are news")
	}
}
