package mesh

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"weft/encap"
)

// Peer is another end of a tunnel, as a host sends to it and receives from it.
type Peer struct {
	// Name is the peer's own name in keys. Only a Key needs one.
	Name string
	// Endpoint is the address on which the peer receives. Its datagrams must come from
	// the same address, from any port.
	Endpoint netip.AddrPort
	// Prefixes are the inner addresses behind the peer, IPv4 or IPv6. If several
	// peers' prefixes contain an address, the longest counts.
	Prefixes []netip.Prefix
	// Key authenticates datagrams in both directions, and encrypts them if its Cipher
	// does; nil: no authentication. Those of Accept, encap.MaxUDPKeys-1 at most, are
	// accepted, too, while keys change. Accept needs a Key.
	Key    *encap.UDPKey
	Accept []encap.UDPKey
}

// Self is a host that looks for its peers.
type Self struct {
	Name   string
	Keys   []OwnKey // those of its Member, in that order; none: without keys
	Cipher encap.UDPCipher
	Six    bool // it receives by IPv6
	// Within are the prefixes in which those of others must be; none: they may be any.
	Within []netip.Prefix

	agreed map[agreement]encap.UDPKey // of the latest Peers: agreeing takes long
}

// OwnKey is a key of the host itself.
type OwnKey struct {
	PrivateKey
	// Announced is the Revision of the registration that the key came with, and InUse of
	// that which put it first. With both seen by all (View.AllHaveSeen) the former key may
	// go.
	Announced, InUse int64
}

type agreement struct {
	name       string
	own, other PublicKey
}

// MaxProblems is how many Problems are named.
const MaxProblems = 100

// Peers returns the others, in the order of their registrations, and what does not count
// of these, with the reason. Both ends of a pair with keys must have some; one with and
// one without are no peers.
func (s *Self) Peers(v *View) (peers []Peer, problems []Problem) {
	agreed := make(map[agreement]encap.UDPKey)
	var prefixes taken
	for _, name := range slices.Sorted(maps.Keys(v.strangers)) {
		if len(problems) < MaxProblems {
			problems = append(problems, Problem{name, v.strangers[name].why})
		}
	}
	all := v.sorted()
	if own := v.members[s.Name]; own != nil { // first of all
		i := slices.Index(all, own)
		copy(all[1:], all[:i])
		all[0] = own
	}
	for _, k := range all {
		say := func(format string, args ...any) {
			if len(problems) < MaxProblems {
				problems = append(problems, Problem{k.Name, fmt.Sprintf(format, args...)})
			}
		}
		if k.trouble != "" {
			say("%s, so what was registered before counts", k.trouble)
		}
		var behind []netip.Prefix
		for _, p := range k.Prefixes {
			if k.Name != s.Name && !s.takes(p) {
				say("%v is not within what this host takes from others", p)
				continue
			}
			if prefixes.owners.Size() >= MaxPrefixesOfAll {
				say("there are %d prefixes already", MaxPrefixesOfAll)
			} else if whose, ok := prefixes.take(p, k.Name); ok {
				behind = append(behind, p)
			} else {
				say("%v overlaps what is behind %s, which was registered first", p, whose)
			}
		}
		if k.Name == s.Name {
			continue
		}
		p := Peer{Name: k.Name, Prefixes: behind}
		for _, e := range k.Endpoints {
			if e.Addr().Unmap().Is6() == s.Six && !p.Endpoint.IsValid() {
				p.Endpoint = e
			}
		}
		switch {
		case len(behind) == 0:
		case !p.Endpoint.IsValid():
			say("none of its endpoints is of the family of this host's")
		case (len(k.Keys) == 0) != (len(s.Keys) == 0):
			say("one of it and this host has a key, and the other one has not")
		default:
			if err := s.agree(&p, k, agreed); err != nil {
				say("%v", err)
				continue
			}
			peers = append(peers, p)
		}
	}
	s.agreed = agreed
	return peers, problems
}

// takes reports whether a prefix may be another host's.
func (s *Self) takes(p netip.Prefix) bool {
	return len(s.Within) == 0 || slices.ContainsFunc(s.Within, func(w netip.Prefix) bool { return w.Bits() <= p.Bits() && w.Overlaps(p) })
}

// agree gives a peer its keys. The host sends by its key in use, or by the former one as
// long as the peer has not seen that.
func (s *Self) agree(p *Peer, other *known, agreed map[agreement]encap.UDPKey) error {
	send := 0
	if len(s.Keys) > 1 && s.Keys[1].Announced > 0 && s.Keys[1].Announced < s.Keys[0].Announced && other.Seen < s.Keys[0].Announced {
		send = 1
	}
	for i, mine := range s.Keys {
		for j, theirs := range other.Keys {
			a := agreement{p.Name, mine.Public(), theirs}
			key, ok := s.agreed[a]
			if !ok {
				var err error
				if key, err = Agree(mine.PrivateKey, s.Name, theirs, p.Name, s.Cipher); err != nil {
					return err
				}
			}
			agreed[a] = key
			if i == send && j == 0 {
				p.Key = &key
			} else {
				p.Accept = append(p.Accept, key)
			}
		}
	}
	return nil
}
