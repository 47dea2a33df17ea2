package mesh

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// identityOf is an identity that follows from a number.
func identityOf(n int) Identity {
	i, err := ParseIdentity([32]byte{2, byte(n)})
	if err != nil {
		panic(err)
	}
	return i
}

func signedMember(t *testing.T, i Identity, name string, n int, keys ...PublicKey) Member {
	t.Helper()
	m := member(name, n, keys...)
	if err := m.Sign(i); err != nil {
		t.Fatal(err)
	}
	return m
}

// Whoever changes anything of a signed registration makes it none.
func TestMember_signature(t *testing.T) {
	m := signedMember(t, identityOf(1), "a", 1, keyOf(0, 1).Public())
	m.Seen = 0
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(b); err != nil || got.Identity != identityOf(1).Public() {
		t.Fatalf("%+v, %v", got, err)
	}
	for what, change := range map[string]func(m *Member){
		"name":         func(m *Member) { m.Name = "b" },
		"endpoint":     func(m *Member) { m.Endpoints[0] = netip.MustParseAddrPort("192.0.2.9:5740") },
		"prefix":       func(m *Member) { m.Prefixes[0] = netip.MustParsePrefix("10.77.0.0/16") },
		"key":          func(m *Member) { m.Keys[0] = keyOf(0, 9).Public() },
		"another key":  func(m *Member) { m.Keys = append(m.Keys, keyOf(1, 9).Public()) },
		"seen":         func(m *Member) { m.Seen = 1 << 40 },
		"identity":     func(m *Member) { m.Identity = identityOf(2).Public() },
		"no identity":  func(m *Member) { m.Identity = PublicIdentity{} },
		"no signature": func(m *Member) { m.Signature = nil },
		"short":        func(m *Member) { m.Signature = m.Signature[:63] },
		"a bit":        func(m *Member) { m.Signature[5] ^= 1 },
	} {
		var c Member
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(err)
		}
		change(&c)
		changed, err := json.Marshal(c)
		if err != nil || bytes.Equal(changed, b) {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := Decode(changed); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if _, err := ParseIdentity([32]byte{}); err == nil {
		t.Error("zeros are an identity")
	}
	if i, err := ParseIdentity(identityOf(3).Seed()); err != nil || i.Public() != identityOf(3).Public() || i.IsZero() || !(Identity{}).IsZero() {
		t.Errorf("%v", err)
	}
}

// Nobody who writes the directory takes the place of a host that signs: not with the host's public
// keys, not step by step, not after the host's end, not by a list of all. What they try is named.
func TestView_pins(t *testing.T) {
	own, evil := identityOf(1), identityOf(2)
	key, next, stolen := keyOf(0, 1).Public(), keyOf(1, 2).Public(), keyOf(1, 66).Public()
	self := Self{Name: "self", Keys: []OwnKey{{PrivateKey: keyOf(0, 9)}}}
	at := func(m Member, revision, since int64) Member { m.Revision, m.Since = revision, since; return m }
	keysOf := func(v *View) []PublicKey {
		peers, _ := self.Peers(v)
		if len(peers) == 0 {
			return nil
		}
		return v.members["a"].Keys
	}
	for what, c := range map[string]struct {
		tries []Member
		ended bool // the host's own registration is gone
	}{
		"announced by another identity": {[]Member{at(signedMember(t, evil, "a", 1, key, stolen), 2, 1), at(signedMember(t, evil, "a", 1, stolen), 3, 1)}, false},
		"announced by nobody":           {[]Member{at(member("a", 1, key, stolen), 2, 1), at(member("a", 1, stolen), 3, 1)}, false},
		"deleted before":                {[]Member{at(signedMember(t, evil, "a", 1, stolen), 3, 3)}, true},
		"with the same key":             {[]Member{at(signedMember(t, evil, "a", 7, key), 2, 1)}, false},
	} {
		for _, list := range []bool{false, true} {
			v := &View{}
			v.Put(at(signedMember(t, own, "a", 1, key), 1, 1))
			if got := v.TakePinned(); len(got) != 1 || got["a"] != own.Public() || v.TakePinned() != nil {
				t.Errorf("%v is pinned", got)
			}
			for _, m := range c.tries {
				if list {
					v.Replace([]Member{m})
				} else {
					v.Put(m)
				}
			}
			want := []PublicKey{key}
			if c.ended {
				want = nil
			}
			_, problems := self.Peers(v)
			if !slices.Equal(keysOf(v), want) || v.Strangers() != 1 || v.Refused() == 0 || !strings.Contains(fmt.Sprint(problems), "the name ") {
				t.Errorf("%s, list %t: keys %v, %d strangers, %v", what, list, keysOf(v), v.Strangers(), problems)
			}
			if peers, _ := self.Peers(v); len(peers) > 0 && peers[0].Prefixes[0] != member("a", 1).Prefixes[0] {
				t.Errorf("%s: %v", what, peers)
			}
			// The host itself does what it likes, without announcing it.
			v.Put(at(signedMember(t, own, "a", 1, next), 9, 9))
			if !slices.Equal(keysOf(v), []PublicKey{next}) || v.Strangers() != 0 {
				t.Errorf("%s: %v", what, keysOf(v))
			}
		}
	}
}

// An operator removes a name, and whoever has it then counts.
func TestView_repin(t *testing.T) {
	self := Self{Name: "self", Keys: []OwnKey{{PrivateKey: keyOf(0, 9)}}}
	v := &View{}
	v.Pin("a", identityOf(1).Public())
	m := signedMember(t, identityOf(2), "a", 1, keyOf(0, 1).Public())
	m.Revision, m.Since = 1, 1
	v.Put(m)
	if peers, problems := self.Peers(v); len(peers) != 0 || len(problems) != 1 || !strings.Contains(problems[0].What, "known peers") {
		t.Errorf("%v, %v", peers, problems)
	}
	if v.Repin(map[string]PublicIdentity{"a": identityOf(1).Public()}) || v.Repin(map[string]PublicIdentity{"a": identityOf(3).Public()}) {
		t.Error("nothing has changed")
	}
	if !v.Repin(nil) {
		t.Error("the name is not pinned any more")
	}
	if peers, problems := self.Peers(v); len(peers) != 1 || len(problems) != 0 || v.TakePinned()["a"] != identityOf(2).Public() {
		t.Errorf("%v, %v", peers, problems)
	}
}

// A directory that has been restored has lower revisions: what a member says that it has seen of the
// former ones says nothing.
func TestView_restored(t *testing.T) {
	v := &View{}
	put := func(name string, n int, revision, seen int64, keys ...PublicKey) {
		m := member(name, n, keys...)
		m.Revision, m.Since, m.Seen = revision, revision, seen
		v.Put(m)
	}
	put("a", 1, 5000, 0, keyOf(0, 1).Public(), keyOf(1, 2).Public())
	put("b", 2, 5001, 5000, keyOf(0, 3).Public())
	if v.Seen() != 5000 || !v.AllHaveSeen("a", 5000) {
		t.Fatalf("seen %d", v.Seen())
	}
	v.Renumber()
	put("b", 2, 90, 5000, keyOf(0, 3).Public()) // it has not found out yet
	put("a", 1, 100, 0, keyOf(0, 1).Public(), keyOf(1, 2).Public())
	if v.Seen() != 100 || v.AllHaveSeen("a", 100) {
		t.Errorf("b is said to have seen what it has not: seen %d", v.Seen())
	}
}

// Nobody has to say that he has seen a host that comes: only who replaces a key waits for others.
func TestView_seenOfJoins(t *testing.T) {
	v := &View{}
	for i := range 100 {
		m := member(fmt.Sprint("h", i), i, keyOf(0, i+1).Public())
		m.Revision, m.Since = int64(i+1), int64(i+1)
		v.Put(m)
	}
	if v.Seen() != 0 {
		t.Errorf("seen %d", v.Seen())
	}
}

// A writer of the directory brings back what the host has signed before: a key that it has retired since.
func TestView_formerRegistration(t *testing.T) {
	own := identityOf(1)
	old, next := keyOf(0, 1).Public(), keyOf(1, 2).Public()
	at := func(serial, revision, since int64, key PublicKey) Member {
		m := member("a", 1, key)
		m.Serial = serial
		if err := m.Sign(own); err != nil {
			t.Fatal(err)
		}
		m.Revision, m.Since = revision, since
		return m
	}
	for what, back := range map[string]func(v *View, m Member){
		"written over": func(v *View, m Member) { v.Put(m) },
		"deleted":      func(v *View, m Member) { v.Delete("a"); m.Since = m.Revision; v.Put(m) },
		"in a list":    func(v *View, m Member) { v.Replace([]Member{m}) },
	} {
		v := &View{}
		v.Put(at(1, 1, 1, old))
		v.Put(at(2, 2, 1, next))
		back(v, at(1, 3, 1, old))
		if m, ok := v.Member("a"); ok && m.Keys[0] == old || v.Refused() != 1 {
			t.Errorf("%s: %v, refused %d", what, m.Keys, v.Refused())
		}
		v.Put(at(3, 4, 4, next))
		if m, _ := v.Member("a"); len(m.Keys) == 0 || m.Keys[0] != next || v.Strangers() != 0 {
			t.Errorf("%s: the host itself: %v", what, m.Keys)
		}
	}
}

// A later release may say more of a host, and signs it with the rest. Who does not know it takes the
// rest. Nothing of it can be changed, left out or added.
func TestDecode_later(t *testing.T) {
	m := member("a", 1, keyOf(0, 1).Public())
	m.Identity, m.Serial = identityOf(1).Public(), 5
	bare, err := json.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	later := bytes.Replace(bare, []byte(`,"keys":[{`), []byte(`,"mtu":[9000,{"a":null}],"keys":[{"kind":"pq",`), 1)
	signature := ed25519.Sign(identityOf(1).private, append([]byte(signedHead), later...))
	with := func(b []byte) []byte {
		return fmt.Appendf(bytes.TrimSuffix(bytes.Clone(b), []byte("}")), `,"signature":%q}`, base64.StdEncoding.EncodeToString(signature))
	}
	got, err := Decode(with(later))
	if err != nil || got.Name != "a" || len(got.Keys) != 1 || got.Serial != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := DecodeStrict(with(later)); err == nil {
		t.Error("what a person writes may say what nobody knows")
	}
	for what, b := range map[string][]byte{
		"changed": bytes.Replace(later, []byte("9000"), []byte("9001"), 1), "left out": bare,
		"added": append(bytes.TrimSuffix(bytes.Clone(later), []byte("}")), `,"x":1}`...),
	} {
		if _, err := Decode(with(b)); err == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
	if m, err := Decode([]byte(`{"name":"a","endpoints":["192.0.2.1:1"],"prefixes":["10.0.0.1/32"],"later":{"signature":"x"}}`)); err != nil || m.Name != "a" {
		t.Errorf("%+v, %v", m, err)
	}
}
