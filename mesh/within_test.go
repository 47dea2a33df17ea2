package mesh

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// A directory leads nothing to others but what the host takes from them, and the rest of a
// registration counts.
func TestSelf_within(t *testing.T) {
	within := []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("fd00:9::/64")}
	for prefix, ok := range map[string]bool{
		"10.9.0.0/16": true, "10.9.7.0/24": true, "fd00:9::7/128": true,
		"0.0.0.0/0": false, "10.8.0.0/15": false, "10.10.0.0/24": false, "192.0.2.1/32": false, "::/0": false, "fd00:9::/63": false,
	} {
		var v View
		m := member("b", 2, keyOf(0, 2).Public())
		m.Prefixes, m.Revision, m.Since = []netip.Prefix{netip.MustParsePrefix(prefix)}, 1, 1
		v.Put(m)
		s := Self{Name: "a", Keys: []OwnKey{{PrivateKey: keyOf(0, 1)}}, Within: within}
		peers, problems := s.Peers(&v)
		if ok != (len(peers) == 1) || ok != (len(problems) == 0) {
			t.Errorf("%s: %v, %v", prefix, peers, problems)
		}
		if !ok && !strings.Contains(problems[0].What, prefix+" is not within") {
			t.Errorf("%s: %v", prefix, problems)
		}
		s.Within = nil
		if peers, _ := s.Peers(&v); len(peers) != 1 {
			t.Errorf("%s, anywhere: %v", prefix, peers)
		}
		own := s
		own.Name, own.Within = "b", within // its own may be anywhere
		if _, problems := own.Peers(&v); len(problems) > 0 {
			t.Errorf("%s, its own: %v", prefix, problems)
		}
	}
	var v View
	m := member("b", 2, keyOf(0, 2).Public())
	m.Prefixes, m.Revision, m.Since = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("fd00:9::7/128")}, 1, 1
	v.Put(m)
	s := Self{Name: "a", Keys: []OwnKey{{PrivateKey: keyOf(0, 1)}}, Within: within}
	if peers, problems := s.Peers(&v); len(peers) != 1 || !slices.Equal(peers[0].Prefixes, m.Prefixes[1:]) || len(problems) != 1 {
		t.Errorf("%v, %v", peers, problems)
	}
}
