package mesh

import (
	"strconv"
	"strings"
	"testing"
)

// flooded is a View in a directory that somebody writes who may write all of it.
type flooded struct {
	View
	revision int64
	ids      map[int]PublicIdentity
}

func (f *flooded) identity(who int) PublicIdentity {
	if _, ok := f.ids[who]; !ok {
		if f.ids == nil {
			f.ids = make(map[int]PublicIdentity)
		}
		f.ids[who] = identityOf(who).Public()
	}
	return f.ids[who]
}

var aKey = keyOf(0, 1).Public()

// member makes the next registration. Decode has checked that it is signed, and View does not.
func (f *flooded) member(name string, who int) Member {
	f.revision++
	m := member(name, 1, aKey)
	m.Identity, m.Serial, m.Revision, m.Since = f.identity(who), f.revision, f.revision, f.revision
	return m
}

func (f *flooded) put(name string, who int) { f.Put(f.member(name, who)) }

// keeps checks that a name has not been taken, and that the forger's registration by it does not count.
func (f *flooded) keeps(t *testing.T, name string, whose, forger int) {
	t.Helper()
	f.Delete(name)
	f.put(name, forger)
	if f.Has(name) || f.pins[name] != f.identity(whose) {
		t.Errorf("%q is taken", name)
	}
	f.Delete(name)
	f.put(name, whose)
	if m, ok := f.Member(name); !ok || m.Identity != f.identity(whose) {
		t.Errorf("%q: whose it is does not get it back", name)
	}
	if len(f.pins) > MaxPins || len(f.members) > MaxMembers || len(f.strangers) > MaxMembers {
		t.Errorf("%d pins, %d members, %d strangers", len(f.pins), len(f.members), len(f.strangers))
	}
}

// Names that are known stay known, whatever comes. New ones are refused, counted and named when there are
// too many, until somebody removes some.
func TestView_pinsFull(t *testing.T) {
	f := &flooded{}
	f.Pin("self", f.identity(9))
	f.put("registered", 1)
	for i := 0; len(f.pins) < MaxPins; i++ {
		f.Pin(strconv.Itoa(i), f.identity(2))
	}
	f.TakePinned()
	f.put("new", 3)
	if f.Has("new") || f.Refused() != 1 || len(f.pins) != MaxPins || len(f.TakePinned()) > 0 {
		t.Errorf("%d pins, %d refused", len(f.pins), f.Refused())
	}
	if _, problems := (&Self{Name: "self"}).Peers(&f.View); !strings.Contains(problems[0].What, "knows 131072 names already") || !strings.Contains(problems[0].What, "remove those that are gone") {
		t.Errorf("%v", problems)
	}
	f.put("registered", 1)
	f.put("7", 2) // the file has it
	if m, _ := f.Member("registered"); m.Revision != 3 || !f.Has("7") {
		t.Error("names that are known are refused")
	}
	kept := map[string]PublicIdentity{"self": f.identity(9)} // and all the others have been removed
	if !f.Repin(kept) || !f.Has("new") || !f.Has("registered") || len(f.pins) != 4 {
		t.Errorf("%d pins", len(f.pins))
	}
	f.put("8", 3)
	if fresh := f.TakePinned(); len(fresh) != 2 || fresh["new"] != f.identity(3) || fresh["8"] != f.identity(3) || f.Refused() != 1 {
		t.Errorf("%v, %d refused", fresh, f.Refused())
	}
}

// Whoever registers very many names, also so that none more is noted that does not count, gets none that is
// known.
func TestView_floodOfStrangers(t *testing.T) {
	f := &flooded{}
	f.put("victim", 1)
	for i := range MaxMembers {
		name := "s" + strconv.Itoa(i)
		f.put(name, 2)
		f.Delete(name)
		f.put(name, 3)
	}
	f.keeps(t, "victim", 1, 9)
	for i := range MaxPins {
		name := "m" + strconv.Itoa(i)
		f.put(name, 2)
		if i >= MaxMembers-10 {
			f.Delete("m" + strconv.Itoa(i-1000))
		}
	}
	for name, whose := range f.TakePinned() {
		if whose == (PublicIdentity{}) {
			t.Fatalf("%q is nobody's", name)
		}
	}
	f.keeps(t, "victim", 1, 9)
}

// A host that is away while very many names are registered, or that is not among what is read of
// them, has its name when it comes again, and so have those of the file.
func TestView_floodWhileAway(t *testing.T) {
	f := &flooded{}
	for i := range 100 {
		f.Pin("file"+strconv.Itoa(i), f.identity(1))
	}
	f.put("away", 1)
	f.Delete("away")
	f.put("there", 1)
	var all []Member
	for i := range MaxMembers {
		all = append(all, f.member("!"+strconv.Itoa(i), 2))
	}
	f.Replace(all)
	for i := range MaxPins {
		f.Delete("!" + strconv.Itoa(i%MaxMembers))
		name := "#" + strconv.Itoa(i)
		f.put(name, 2)
		f.Delete(name)
	}
	for i := range 100 {
		f.keeps(t, "file"+strconv.Itoa(i), 1, 9)
	}
	f.keeps(t, "away", 1, 9)
	f.keeps(t, "there", 1, 9)
}
