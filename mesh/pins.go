package mesh

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxPins is how many names a View has pinned at most. Names that are not registered are forgotten when
// there would be more, those first that have been gone for longest.
const MaxPins = 2 * MaxMembers

// forgetsAtOnce is how many of them go at a time: finding them takes long.
const forgetsAtOnce = MaxPins / 16

// Pin says whose a name is. Registrations by others do not count from the next Put on.
func (v *View) Pin(name string, whose PublicIdentity) {
	if v.pins == nil {
		v.pins = make(map[string]PublicIdentity)
	}
	if _, ok := v.pins[name]; ok || len(v.pins) < MaxPins {
		v.pins[name] = whose
	}
}

// Own says which name is the host's own: it is never forgotten.
func (v *View) Own(name string) { v.own = name }

// forget makes room for another pin. Nobody's is forgotten who is registered, or had been before the
// directory was restored.
func (v *View) forget() {
	type gone struct {
		name string
		left uint64
	}
	var list []gone
	for name := range v.pins {
		if _, strange := v.strangers[name]; !strange && v.members[name] == nil && v.before[name] == nil && !v.missing[name] && name != v.own {
			list = append(list, gone{name, v.left[name]})
		}
	}
	slices.SortFunc(list, func(a, b gone) int { return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.name, b.name)) })
	for _, g := range list[:min(len(list), forgetsAtOnce)] {
		delete(v.pins, g.name)
		delete(v.serials, g.name)
		delete(v.left, g.name)
		v.forgotten = append(v.forgotten, g.name)
		v.forgets++
	}
	v.fresh = slices.DeleteFunc(v.fresh, func(name string) bool { _, ok := v.pins[name]; return !ok })
}

// leaves takes note that a pinned name is not registered any more.
func (v *View) leaves(name string) {
	if _, ok := v.pins[name]; !ok {
		return
	}
	if v.left == nil {
		v.left = make(map[string]uint64)
	}
	v.lefts++
	v.left[name] = v.lefts
}

// Forgotten is how many names have been forgotten as there were too many.
func (v *View) Forgotten() uint64 { return v.forgets }

// TakeForgotten returns the names that have been forgotten since the last call. Call TakePinned after it: a
// name may have been pinned again.
func (v *View) TakeForgotten() []string {
	names := v.forgotten
	v.forgotten = nil
	return names
}

// TakePinned returns the names that were pinned, by registrations, since the last call.
func (v *View) TakePinned() (list map[string]PublicIdentity) {
	for _, name := range v.fresh {
		if list == nil {
			list = make(map[string]PublicIdentity)
		}
		list[name] = v.pins[name]
	}
	v.fresh = nil
	return list
}

// Repin has the names of registrations that do not count be those of others, or nobody's, as
// pins says: somebody has looked at them. It reports whether something counts now.
func (v *View) Repin(pins map[string]PublicIdentity) (changed bool) {
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
	}
	return ""
}

// pin pins the name of a registration that counts, if it is signed.
func (v *View) pin(m *Member) {
	if _, ok := v.pins[m.Name]; !ok && m.Identity != (PublicIdentity{}) {
		if len(v.pins) >= MaxPins {
			v.forget()
		}
		v.Pin(m.Name, m.Identity)
		v.fresh = append(v.fresh, m.Name)
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
