package mesh

import "slices"

// Renumber forgets the Revisions of all registrations: the directory has been restored from a backup, and
// begins anew below those that were. It is followed by Replace, with what the backup has. That is older
// than what this View knows, so a registration by which a host would go back to former keys is in doubt:
// what was known before stays until the host registers again, or until Settle. Pins stay.
func (v *View) Renumber() {
	v.before = v.members
	v.members, v.strangers, v.seen = nil, nil, 0
}

// Settle has the registrations count that are in doubt, and waits for no host any more that had been
// there: all have had the time to register again. It reports whether other registrations count.
func (v *View) Settle() (changed bool) {
	v.missing = nil
	for name, k := range v.members {
		if k.doubt != nil {
			m := *k.doubt
			v.Delete(name)
			v.Put(m)
			changed = true
		}
	}
	return changed
}

// restored takes a registration that a restored directory has, if what was known before is to stay.
func (v *View) restored(m *Member) bool {
	k := v.before[m.Name]
	if k == nil {
		return false
	}
	delete(v.before, m.Name)
	if v.foreign(m) == "" && !k.isAfter(m) {
		if newest := k.newestKey(); len(m.Keys) == 2 && len(k.Keys) == 2 && newest == k.Keys[0] && newest == m.Keys[1] {
			m.Keys = k.Keys // the backup is of before the host had taken its newer key in use
		}
		return false
	}
	k.doubt, k.trouble, k.refused = m, "", 0
	k.Revision, k.Since, k.Seen = m.Revision, m.Since, 0
	if v.foreign(m) == "" { // what somebody else says that he has seen says nothing of the host
		k.Seen = m.Seen
	}
	if v.members == nil {
		v.members = make(map[string]*known)
	}
	v.members[m.Name] = k
	return true
}

// isAfter reports whether a registration is a later one than another one of the same name.
func (m *Member) isAfter(former *Member) bool {
	known := func(k PublicKey) bool { return slices.Contains(m.Keys, k) }
	switch {
	case m.Identity != PublicIdentity{} && m.Identity == former.Identity:
		return m.Serial > former.Serial
	case len(m.Keys) == 0 || len(former.Keys) == 0:
		return false
	case !slices.ContainsFunc(former.Keys, known):
		return true // or one that follows several others: it counts as soon as the host registers again
	}
	newest := former.newestKey()
	if newest == m.newestKey() {
		return !known(former.Keys[0]) // the former one is forgotten
	}
	return known(newest)
}

// newestKey is the key that follows the other one, if there are two. Without any it is none.
func (m *Member) newestKey() (k PublicKey) {
	if len(m.Keys) == 0 {
		return k
	}
	if len(m.Keys) == 2 && m.Keys[1].Generation == (m.Keys[0].Generation+1)%Generations {
		return m.Keys[1]
	}
	return m.Keys[0]
}
