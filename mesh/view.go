package mesh

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gaissmai/bart"
)

// MaxMembers is how many Members a View has at most. Further ones are refused.
const MaxMembers = 1 << 16

// View is what a host knows of a directory. It is not safe for concurrent use.
//
// A registration that contradicts what is known does not count, so that two hosts that have
// one name or one prefix by mistake do not take it from each other:
//
//   - A name whose registration was signed is its identity's from then on: it is pinned. What
//     somebody else registers by it does not count until the pin is gone (Repin). Of what
//     the identity has signed, the latest that this View has seen counts, and none before it.
//   - Without a signature, a key in use must have been announced before, as one that is accepted. A
//     name that has lost its key must first be free: its former registration must have ended. A list
//     of all members counts in any case (Replace).
//   - Of prefixes that overlap, those count whose host was registered first. A host's own count
//     for itself in any case.
//
// So whoever writes the registrations of others can end them and take names that this View has not
// seen, but not the place of a host that it knows and that signs. Where hosts
// do not sign, the directory has to see to it that each writes its own registration only.
type View struct {
	members   map[string]*known
	before    map[string]*known   // Renumber, until Replace
	missing   map[string]bool     // those of before that have not registered again
	strangers map[string]stranger // registrations that do not count for their identity
	pins      map[string]PublicIdentity
	serials   map[string]int64 // the greatest Serial that counted, of names that are pinned
	fresh     []string         // names that were pinned since TakePinned
	seen      int64
	refused   uint64
}

// stranger is a registration by a pinned name that is not its identity's.
type stranger struct {
	Member
	why string
}

// known is a Member, and what followed from its registrations.
type known struct {
	Member
	trouble string // why the latest registration does not count; "": it does
	refused int64  // the Revision of the first of those that do not
	// doubt is what a restored directory has instead; nil: nothing else.
	doubt *Member
}

// Put takes a registration that the directory has now. Of one name registrations must come
// in the order of their Revisions.
func (v *View) Put(m Member) {
	if m.Seen > m.Revision { // of a directory that has been restored since
		m.Seen = 0
	}
	k := v.members[m.Name]
	if k != nil && m.Since > k.Since { // the name was free between
		v.Delete(m.Name)
		k = nil
	}
	if k != nil && k.doubt != nil && k.doubt.Revision == m.Revision || k == nil && v.restored(&m) {
		return
	}
	if why := v.foreign(&m); why != "" { // k is what the host had registered, if it is still there
		v.refused++
		if _, ok := v.strangers[m.Name]; ok || len(v.strangers) < MaxMembers {
			if v.strangers == nil {
				v.strangers = make(map[string]stranger)
			}
			v.strangers[m.Name] = stranger{m, why}
		}
		return
	}
	delete(v.strangers, m.Name)
	if k == nil {
		if len(v.members) >= MaxMembers {
			v.refused++
			return
		}
		if v.members == nil {
			v.members = make(map[string]*known)
		}
		k = &known{}
		v.members[m.Name] = k
	} else if k.trouble = k.contradicts(&m); k.trouble != "" {
		v.refused++
		if k.refused == 0 {
			k.refused = m.Revision
		}
		k.Seen = max(k.Seen, m.Seen)
		return
	}
	for i, key := range m.Keys {
		// Who has one key waits for nobody: else all would have to say that they have seen each
		// host that comes.
		if j := slices.Index(k.Keys, key); len(m.Keys) > 1 && (j < 0 || i == 0 && j > 0) {
			v.seen = max(v.seen, m.Revision)
		}
	}
	k.Member, k.refused, k.doubt = m, 0, nil
	delete(v.missing, m.Name)
	v.pin(&m)
	v.note(&m)
}

// Replace takes all registrations that the directory has. They count even where they
// contradict what was known: what would have announced them may have been missed.
func (v *View) Replace(all []Member) {
	there := make(map[string]bool, len(all))
	for i := range all {
		m := &all[i]
		there[m.Name] = true
		if k := v.members[m.Name]; k != nil && v.foreign(m) == "" && k.contradicts(m) != "" {
			v.Delete(m.Name)
		}
	}
	for name := range v.members {
		if !there[name] {
			v.Delete(name)
		}
	}
	for name := range v.strangers {
		if !there[name] {
			v.Delete(name)
		}
	}
	for _, m := range all {
		v.Put(m)
	}
	for name := range v.before {
		if v.missing == nil {
			v.missing = make(map[string]bool)
		}
		v.missing[name] = true
	}
	v.before = nil
}

// contradicts says why a registration cannot follow what is known; "" if it can.
func (k *known) contradicts(m *Member) (why string) {
	if why = contradicts(&k.Member, m); why != "" && k.doubt != nil && contradicts(k.doubt, m) == "" {
		return ""
	}
	return why
}

// contradicts says why a registration cannot follow another one; "" if it can.
func contradicts(former, m *Member) string {
	switch {
	case len(former.Keys) == 0, m.Identity != PublicIdentity{} && m.Identity == former.Identity:
		return ""
	case len(m.Keys) == 0:
		return "it has no key any more"
	case !slices.Contains(former.Keys, m.Keys[0]):
		return fmt.Sprintf("its key %v has not been announced", m.Keys[0])
	}
	return ""
}

// Delete takes note that a name is free.
func (v *View) Delete(name string) {
	delete(v.members, name)
	delete(v.strangers, name)
}

// Has reports whether a name is registered.
func (v *View) Has(name string) bool { return v.members[name] != nil }

// Member returns the registration of a name that counts.
func (v *View) Member(name string) (m Member, ok bool) {
	if k := v.members[name]; k != nil {
		return k.Member, true
	}
	return Member{}, false
}

// Seen is what a host's own Member.Seen should be once it has given its tunnel the Peers. It
// ends before a registration that does not count: whose it is must not take it for known.
func (v *View) Seen() int64 {
	seen := v.seen
	for _, k := range v.members {
		if k.refused > 0 {
			seen = min(seen, k.refused-1)
		}
	}
	return seen
}

// Refused is how many registrations did not count.
func (v *View) Refused() uint64 { return v.refused }

// AllHaveSeen reports whether all members but one know a registration of that one, which
// announces a key or puts one in use. It is false until the View has it, too, as somebody
// may have been registered before whom it does not have yet. Who is registered later reads
// the directory after that. It is false while hosts that a restored directory does not have may still
// register again.
func (v *View) AllHaveSeen(name string, revision int64) bool {
	if len(v.missing) > 0 {
		return false
	}
	if own := v.members[name]; own == nil || own.Revision < revision {
		return false
	}
	for other, k := range v.members {
		if other != name && k.Seen < revision {
			return false
		}
	}
	return true
}

// Problem is a registration, or a part of one, that does not count.
type Problem struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// sorted are the members by the time of their registration, and the names.
func (v *View) sorted() []*known {
	all := make([]*known, 0, len(v.members))
	for _, k := range v.members {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *known) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Name, b.Name)) })
	return all
}

// MaxPrefixesOfAll is how many prefixes of all members count.
const MaxPrefixesOfAll = 1 << 18

// taken are prefixes that have an owner.
type taken struct{ owners bart.Table[string] }

// take gives a prefix to a name, or returns whose it overlaps.
func (t *taken) take(p netip.Prefix, name string) (whose string, ok bool) {
	if whose, ok := t.owners.LookupPrefix(p); ok {
		return whose, false
	}
	for _, whose := range t.owners.Subnets(p) {
		return whose, false
	}
	t.owners.Insert(p, name)
	return "", true
}
