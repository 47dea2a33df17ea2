package mesh

import "fmt"

// MaxPins is how many names a View has pinned at most. Registrations of further ones that are signed do not
// count: if older ones made room, whoever registers many names could take those of others.
const MaxPins = 2 * MaxMembers

// Pin says whose a name is. Registrations by others do not count from the next Put on.
func (v *View) Pin(name string, whose PublicIdentity) {
	if v.pins == nil {
		v.pins = make(map[string]PublicIdentity)
	}
	if _, ok := v.pins[name]; ok || len(v.pins) < MaxPins {
		v.pins[name] = whose
	}
}

// TakePinned returns the names that were pinned, by registrations, since the last call.
func (v *View) TakePinned() (list map[string]PublicIdentity) {
	for _, name := range v.fresh {
		whose, ok := v.pins[name]
		if !ok { // Repin
			continue
		}
		if list == nil {
			list = make(map[string]PublicIdentity)
		}
		list[name] = whose
	}
	v.fresh = nil
	return list
}

// Repin has the names of registrations that do not count be those of others, or nobody's, as
// pins says: somebody has looked at them. If there is no room for names, those that pins does not have
// and that are not registered make some. It reports whether something counts now. Call it when all of
// TakePinned is among pins.
func (v *View) Repin(pins map[string]PublicIdentity) (changed bool) {
	if len(v.pins) >= MaxPins {
		for name := range v.pins {
			if _, ok := pins[name]; !ok && v.members[name] == nil && v.before[name] == nil && !v.missing[name] {
				delete(v.pins, name)
				delete(v.serials, name)
			}
		}
	}
	for name, s := range v.strangers {
		switch whose, ok := pins[name]; {
		case ok && whose == s.Identity && v.pins[name] != whose:
			v.pins[name] = whose
			delete(v.serials, name)
		case !ok:
			delete(v.pins, name)
			delete(v.serials, name)
		default:
			continue
		}
		if v.foreign(&s.Member) == "" {
			v.Delete(name)
			v.Put(s.Member)
			changed = true
		}
	}
	return changed
}

// Strangers is how many names have registrations that are not of the identity that is pinned.
func (v *View) Strangers() int { return len(v.strangers) }

// foreign says why a registration is not of whom its name is; "" if it is, or may be.
func (v *View) foreign(m *Member) string {
	switch whose, ok := v.pins[m.Name]; {
	case ok && whose == m.Identity && m.Serial < v.serials[m.Name]:
		return "the host has signed a later one: somebody has brought a former one back, or the host's clock has gone back"
	case ok && whose == m.Identity:
		return ""
	case ok && m.Identity == PublicIdentity{}:
		return fmt.Sprintf("it is not signed, and the name is identity %v's: somebody else has registered by it", whose)
	case ok:
		return fmt.Sprintf("it is signed by identity %v, and the name is %v's: somebody else has registered by it, or the host has been set up anew. In that case remove the name from this host's file of known peers", m.Identity, whose)
	case m.Identity != PublicIdentity{} && len(v.pins) >= MaxPins:
		return fmt.Sprintf("this host knows %d names already and takes no more: remove those that are gone from its file of known peers", len(v.pins))
	}
	return ""
}

// pin pins the name of a registration that counts, if it is signed.
func (v *View) pin(m *Member) {
	if _, ok := v.pins[m.Name]; !ok && m.Identity != (PublicIdentity{}) {
		v.Pin(m.Name, m.Identity)
		if _, ok := v.pins[m.Name]; ok { // there was room
			v.fresh = append(v.fresh, m.Name)
		}
	}
}

// note takes note of how far the identity of a pinned name has counted.
func (v *View) note(m *Member) {
	if whose, ok := v.pins[m.Name]; ok && whose == m.Identity && m.Serial > v.serials[m.Name] {
		if v.serials == nil {
			v.serials = make(map[string]int64)
		}
		v.serials[m.Name] = m.Serial
	}
}
