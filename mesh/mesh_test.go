package mesh

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/encap"
)

func unhex32(s string) [32]byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return [32]byte(b)
}

// keyOf is a key that follows from a number.
func keyOf(generation uint8, n int) PrivateKey {
	k, err := ParsePrivateKey(generation, [32]byte{1, byte(n), byte(n >> 8)})
	if err != nil {
		panic(err)
	}
	return k
}

func member(name string, n int, keys ...PublicKey) Member {
	return Member{Name: name, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:5740"), netip.MustParseAddrPort("[2001:db8::1]:5740")},
		Prefixes: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 0}), 24)}, Keys: keys}
}

// RFC 7748 §6.1.
func TestPrivateKey_public(t *testing.T) {
	const private, public = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb", "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
	k, err := ParsePrivateKey(17, unhex32(private))
	if err != nil {
		t.Fatal(err)
	}
	if p := k.Public(); p.Point != unhex32(public) || p.Generation != 1 || k.Secret() != unhex32(private) {
		t.Errorf("%x", p.Point)
	}
	if _, err := ParsePrivateKey(0, [32]byte{}); err == nil {
		t.Error("zeros are a key")
	}
	if NewPrivateKey(1).Secret() == NewPrivateKey(1).Secret() {
		t.Error("two random keys are the same")
	}
}

// Both ends get the same key, and nobody else does.
func TestAgree(t *testing.T) {
	a, b, c := keyOf(1, 1), keyOf(2, 2), keyOf(3, 3)
	agree := func(own PrivateKey, self string, key PublicKey, other string, cipher encap.UDPCipher) encap.UDPKey {
		t.Helper()
		k, err := Agree(own, self, key, other, cipher)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	want := agree(a, "a", b.Public(), "b", encap.UDPAESGCM)
	if got := agree(b, "b", a.Public(), "a", encap.UDPAESGCM); got != want || got.ID != 0x12 || got.Cipher != encap.UDPAESGCM {
		t.Errorf("%+v at the one end, %+v at the other", want, got)
	}
	secrets := map[[32]byte]string{want.Secret: "itself"}
	for what, k := range map[string]encap.UDPKey{
		"another cipher":       agree(a, "a", b.Public(), "b", encap.UDPChaCha20Poly1305),
		"another name":         agree(a, "a", b.Public(), "c", encap.UDPAESGCM),
		"names that run on":    agree(a, "ab", b.Public(), "", encap.UDPAESGCM),
		"the other's key":      agree(a, "a", c.Public(), "b", encap.UDPAESGCM),
		"the own one":          agree(c, "a", b.Public(), "b", encap.UDPAESGCM),
		"names the other way":  agree(a, "b", b.Public(), "a", encap.UDPAESGCM),
		"a key of its own end": agree(a, "a", a.Public(), "b", encap.UDPAESGCM),
	} {
		if other, ok := secrets[k.Secret]; ok {
			t.Errorf("%s: the same as %s", what, other)
		}
		secrets[k.Secret] = what
	}
	for _, low := range [][32]byte{{}, {1}} { // points of low order: anybody knows what they make
		if _, err := Agree(a, "a", PublicKey{0, low}, "b", encap.UDPGMAC); err == nil || !strings.Contains(err.Error(), `"b"`) {
			t.Errorf("point %x: %v", low[0], err)
		}
	}
	if _, err := Agree(a, "a", b.Public(), "a", encap.UDPGMAC); err == nil {
		t.Error("a host agrees with itself")
	}
}

func TestDecode_refuses(t *testing.T) {
	good := member("a", 1, keyOf(0, 1).Public(), keyOf(1, 2).Public())
	for what, change := range map[string]func(m *Member){
		"name":                func(m *Member) { m.Name = "" },
		"255 bytes":           func(m *Member) { m.Name = strings.Repeat("x", 256) },
		"0 endpoints":         func(m *Member) { m.Endpoints = nil },
		"9 endpoints":         func(m *Member) { m.Endpoints = make([]netip.AddrPort, 9) },
		"0.0.0.0:1":           func(m *Member) { m.Endpoints[0] = netip.MustParseAddrPort("0.0.0.0:1") },
		"224.0.0.1:1":         func(m *Member) { m.Endpoints[0] = netip.MustParseAddrPort("224.0.0.1:1") },
		"192.0.2.1:0":         func(m *Member) { m.Endpoints[0] = netip.MustParseAddrPort("192.0.2.1:0") },
		"0 prefixes":          func(m *Member) { m.Prefixes = nil },
		"257 prefixes":        func(m *Member) { m.Prefixes = make([]netip.Prefix, 257) },
		"10.0.0.1/24":         func(m *Member) { m.Prefixes[0] = netip.MustParsePrefix("10.0.0.1/24") },
		"overlap":             func(m *Member) { m.Prefixes = append(m.Prefixes, netip.MustParsePrefix("10.0.0.0/8")) },
		"3 keys":              func(m *Member) { m.Keys = append(m.Keys, keyOf(3, 4).Public()) },
		"both keys":           func(m *Member) { m.Keys[1].Generation = 0 },
		"generations are":     func(m *Member) { m.Keys[1].Generation = 16 },
		"a key is not 0":      func(m *Member) { m.Keys[0].Point = [32]byte{} },
		"must not be below 0": func(m *Member) { m.Seen = -1 },
	} {
		m := good
		m.Endpoints, m.Prefixes, m.Keys = slices.Clone(m.Endpoints), slices.Clone(m.Prefixes), slices.Clone(m.Keys)
		change(&m)
		if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: encoded, %v", what, err)
		}
		b, err := json.Marshal(m)
		if err != nil {
			continue
		}
		if _, err := Decode(b); err == nil {
			t.Errorf("%s: decoded", what)
		}
	}
	b, err := good.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"nothing": nil, "more": append(bytes.Clone(b), '1'), "garbage": append(bytes.Clone(b), "}}]"...),
		"a short key": bytes.Replace(b, []byte(`="}`), []byte(`"}`), 1), "too long": bytes.Repeat([]byte(" "), MaxBytes+1),
	} {
		if _, err := Decode(b); err == nil {
			t.Errorf("%s: decoded", what)
		}
	}
}

func FuzzDecode(f *testing.F) {
	m := member("a", 1, keyOf(0, 1).Public(), keyOf(1, 2).Public())
	b, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(bytes.Replace(b, []byte(`{"name"`), []byte(`{"later":[{"x":1}],"name"`), 1))
	if err := m.Sign(identityOf(1)); err != nil {
		f.Fatal(err)
	}
	signed, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		if m.Signature != nil { // what nobody here knows is signed, too
			m.Identity, m.Signature, m.Serial = PublicIdentity{}, nil, 0
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("%s is decoded, and cannot be encoded: %v", b, err)
		}
		if n, err := Decode(again); err != nil || !reflect.DeepEqual(m, n) {
			t.Fatalf("%s becomes %+v, and then %+v, %v", b, m, n, err)
		}
	})
}

// Nobody takes a name or a prefix from another one, and what does not count is named.
func TestView_contradictions(t *testing.T) {
	one, two, three := keyOf(0, 1).Public(), keyOf(1, 2).Public(), keyOf(2, 3).Public()
	put := func(v *View, revision, since int64, m Member) {
		m.Revision, m.Since = revision, since
		v.Put(m)
	}
	self := Self{Name: "self", Keys: []OwnKey{{PrivateKey: keyOf(0, 9)}}}
	keysOf := func(v *View, name string) []PublicKey {
		peers, _ := self.Peers(v)
		if !slices.ContainsFunc(peers, func(p Peer) bool { return p.Name == name }) {
			return nil
		}
		return v.members[name].Keys
	}
	said := func(v *View, words ...string) {
		t.Helper()
		_, problems := self.Peers(v)
		text := fmt.Sprint(problems)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: not a word of %q", text, w)
			}
		}
		if len(words) == 0 && len(problems) > 0 {
			t.Error(text)
		}
	}
	v := &View{}
	put(v, 1, 1, member("a", 1, one))
	put(v, 2, 2, member("b", 2, two))
	said(v)
	// A key that nobody has announced.
	put(v, 3, 1, member("a", 1, three))
	if !slices.Equal(keysOf(v, "a"), []PublicKey{one}) || v.Refused() != 1 {
		t.Errorf("a's keys are %v", keysOf(v, "a"))
	}
	said(v, "{a its key", "has not been announced")
	put(v, 4, 1, member("a", 1))
	said(v, "no key any more")
	// Announced, in use, alone.
	for i, keys := range [][]PublicKey{{one, three}, {three, one}, {three}} {
		put(v, int64(5+i), 1, member("a", 1, keys...))
		if !slices.Equal(keysOf(v, "a"), keys) {
			t.Errorf("step %d: %v", i, keysOf(v, "a"))
		}
		said(v)
	}
	if v.Seen() != 6 { // in use
		t.Errorf("seen %d", v.Seen())
	}
	// The name was free between.
	put(v, 9, 9, member("a", 1, two))
	if !slices.Equal(keysOf(v, "a"), []PublicKey{two}) {
		t.Errorf("%v", keysOf(v, "a"))
	}
	// b's prefix, and one that contains it, and one that it contains.
	m := member("c", 2, three)
	m.Prefixes = append(m.Prefixes, netip.MustParsePrefix("10.9.0.0/16"))
	put(v, 10, 10, m)
	m = member("d", 2, three)
	m.Prefixes = []netip.Prefix{netip.MustParsePrefix("8.0.0.0/5")}
	put(v, 11, 11, m)
	m = member("e", 2, three)
	m.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.2.9/32"), netip.MustParsePrefix("10.8.0.0/16")}
	put(v, 12, 12, m)
	said(v, "{c 10.0.2.0/24 overlaps what is behind b", "{d 8.0.0.0/5 overlaps", "{e 10.0.2.9/32 overlaps what is behind b")
	peers, _ := self.Peers(v)
	behind := map[string]string{}
	for _, p := range peers {
		behind[p.Name] = fmt.Sprint(p.Prefixes)
	}
	if want := map[string]string{"a": "[10.0.1.0/24]", "b": "[10.0.2.0/24]", "c": "[10.9.0.0/16]", "e": "[10.8.0.0/16]"}; !reflect.DeepEqual(behind, want) {
		t.Errorf("%v, want %v", behind, want)
	}
	v.Delete("b")
	if peers, _ := self.Peers(v); len(peers) != 3 || peers[1].Name != "c" || len(peers[1].Prefixes) != 2 {
		t.Errorf("without b: %+v", peers)
	}
	// One with a key and one without, and one of the other family.
	put(v, 20, 20, member("f", 20))
	m = member("g", 21, one)
	m.Endpoints = m.Endpoints[1:]
	put(v, 21, 21, m)
	said(v, "{f one of it and this host has a key", "{g none of its endpoints")
}

// Prefixes that overlap are found as by comparing each with each.
func TestTaken_asByComparing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		var tree taken
		var have []netip.Prefix
		for i := range 40 {
			var p netip.Prefix
			if r.IntN(3) == 0 {
				p = netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 32, 15: byte(r.IntN(8))}), r.IntN(129)).Masked()
			} else {
				p = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(2)), byte(r.IntN(4)), byte(r.IntN(4))}), r.IntN(33)).Masked()
			}
			j := slices.IndexFunc(have, p.Overlaps)
			if whose, ok := tree.take(p, fmt.Sprint(i)); ok != (j < 0) || !ok && whose == "" {
				t.Fatalf("seed %d: %v beside %v: %q, %t", seed, p, have, whose, ok)
			} else if ok {
				have = append(have, p)
			}
		}
	}
}
