package mesh

import (
	"fmt"
	"slices"
	"testing"
)

// What a restored directory has counts where it follows what was known, and is in doubt where a host
// would go back to former keys. Numbers are generations: 3 4 is 3 in use, and 4 announced.
func TestView_restoredKeys(t *testing.T) {
	keys := func(generations []uint8) (list []PublicKey) {
		for _, g := range generations {
			list = append(list, keyOf(g, int(g)+1).Public())
		}
		return list
	}
	type g = []uint8
	for _, c := range []struct{ known, backup, want g }{
		{g{4}, g{4}, g{4}},
		{g{4}, g{4, 5}, g{4, 5}},
		{g{4}, g{5, 4}, g{5, 4}}, // not announced: but the host has both
		{g{3, 4}, g{4}, g{4}},
		{g{3, 4}, g{4, 3}, g{4, 3}},
		{g{3, 4}, g{4, 5}, g{4, 5}},
		{g{15, 0}, g{0}, g{0}},
		{g{4, 3}, g{3, 4}, g{4, 3}}, // it goes on accepting both
		{g{4}, g{3}, g{4}},
		{g{4}, g{3, 4}, g{4}},
		{g{3, 4}, g{3}, g{3, 4}},
		{g{4, 3}, g{3}, g{4, 3}},
		{g{4, 3}, g{2, 3}, g{4, 3}},
		{g{0}, g{15}, g{0}},
		{g{9}, g{4}, g{9}},
		{g{}, g{}, g{}},
	} {
		t.Run(fmt.Sprint(c.known, " then ", c.backup), func(t *testing.T) {
			v := &View{}
			m := member("a", 1, keys(c.known)...)
			m.Revision, m.Since = 900, 100
			v.Put(m)
			v.Renumber()
			back := member("a", 1, keys(c.backup)...)
			back.Revision, back.Since = 50, 40
			v.Replace([]Member{back})
			got, ok := v.Member("a")
			if !ok || !slices.Equal(got.Keys, keys(c.want)) || got.Revision != 50 || got.Since != 40 || v.Refused() > 0 {
				t.Fatalf("%v, revision %d, refused %d", got.Keys, got.Revision, v.Refused())
			}
			v.Replace([]Member{back}) // it is read once more
			if got, _ := v.Member("a"); len(got.Keys) != len(c.want) || len(got.Keys) > 0 && !slices.Contains(got.Keys, keys(c.want)[0]) {
				t.Fatalf("read once more: %v", got.Keys)
			}
			if len(c.known) == 0 {
				return
			}
			next := member("a", 1, keys(c.want)...) // the host registers again
			next.Revision, next.Since = 60, 40
			if v.Put(next); v.Refused() > 0 {
				t.Error("it may not register again")
			}
			if v.Settle() {
				t.Error("a host that has registered again is in doubt")
			}
		})
	}
}

// A host that does not register again is taken as the directory has it, and one that the directory does
// not have is waited for no longer.
func TestView_settle(t *testing.T) {
	v := &View{}
	at := func(name string, n int, revision int64, key uint8) Member {
		m := member(name, n, keyOf(key, n).Public())
		m.Revision, m.Since, m.Seen = revision, revision, revision-1
		return m
	}
	for _, m := range []Member{at("a", 1, 700, 3), at("b", 2, 800, 0), at("self", 3, 850, 0)} {
		v.Put(m)
	}
	v.Renumber()
	v.Replace([]Member{at("a", 1, 10, 2), at("self", 3, 11, 0)})
	if v.AllHaveSeen("self", 5) {
		t.Error("b may be there")
	}
	if m, _ := v.Member("a"); m.Keys[0].Generation != 3 || v.Has("b") {
		t.Errorf("%+v", m)
	}
	if !v.Settle() || v.Settle() {
		t.Error("nothing was in doubt, or something still is")
	}
	if m, _ := v.Member("a"); m.Keys[0].Generation != 2 || !v.AllHaveSeen("self", 5) {
		t.Errorf("%+v", m)
	}
	v.Renumber()
	v.Replace([]Member{at("self", 3, 11, 0)})
	if v.Put(at("a", 1, 12, 9)); !v.AllHaveSeen("self", 5) { // it is there again, whatever key it has
		t.Error("a is there again")
	}
}

// What an identity has signed before is in doubt, and so is what another one has signed.
func TestView_restoredSigned(t *testing.T) {
	v := &View{}
	at := func(who int, serial, revision int64, key uint8) Member {
		m := member("a", 1, keyOf(key, 1).Public())
		m.Serial = serial
		if err := m.Sign(identityOf(who)); err != nil {
			t.Fatal(err)
		}
		m.Revision, m.Since = revision, 1
		return m
	}
	v.Put(at(1, 7, 700, 3))
	for _, back := range []Member{at(1, 6, 10, 2), at(2, 9, 10, 9)} {
		v.Renumber()
		v.Replace([]Member{back})
		if m, _ := v.Member("a"); len(m.Keys) == 0 || m.Keys[0].Generation != 3 || v.Refused() > 0 {
			t.Errorf("%+v", m)
		}
	}
	if v.Settle(); v.Has("a") || v.Strangers() != 1 {
		t.Error("another identity has the name")
	}
}

// What somebody else says that he has seen, by the name of a host that a restored directory does not have
// as it was, has no key of another host go.
func TestView_restoredSeen(t *testing.T) {
	for who, want := range map[int]bool{1: true, 9: false} {
		v := &View{}
		self := member("self", 3, keyOf(1, 3).Public(), keyOf(0, 3).Public())
		self.Revision, self.Since = 900, 100
		v.Put(self)
		at := func(who int, serial, seen, revision int64) Member {
			m := member("b", 1, keyOf(0, 1).Public())
			m.Serial, m.Seen = serial, seen
			if err := m.Sign(identityOf(who)); err != nil {
				t.Fatal(err)
			}
			m.Revision, m.Since = revision, revision
			return m
		}
		v.Put(at(1, 7, 0, 800))
		v.Renumber()
		self.Revision, self.Since = 50, 40
		v.Replace([]Member{self, at(who, 7, 60, 60)})
		if v.AllHaveSeen("self", 50) != want {
			t.Errorf("identity %d, who b is or is not, has said so: not %v", who, want)
		}
	}
}
