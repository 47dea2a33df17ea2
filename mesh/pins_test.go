package mesh

import (
	"slices"
	"strconv"
	"testing"
)

// Names are forgotten when there are too many: those that are gone, the longest first, and never one that is
// registered, nor the host's own.
func TestView_forgets(t *testing.T) {
	v := &View{}
	v.Own("self")
	v.Pin("self", identityOf(9).Public())
	revision := int64(0)
	put := func(name string, n int) {
		m := signedMember(t, identityOf(1), name, n, keyOf(0, 1).Public())
		revision++
		m.Revision, m.Since = revision, revision
		v.Put(m)
	}
	whose := identityOf(1).Public()
	put("stays", 1)
	put("was here", 2)
	v.Delete("was here")
	for i := 0; len(v.pins) < MaxPins; i++ {
		v.Pin(strconv.Itoa(i), whose)
	}
	v.TakePinned()
	put("new", 3)
	gone := v.TakeForgotten()
	if v.Forgotten() != forgetsAtOnce || len(gone) != forgetsAtOnce || len(v.pins) != MaxPins-forgetsAtOnce+1 || v.Refused() > 0 || !v.Has("new") {
		t.Errorf("%d forgotten, %d pins, %d refused", v.Forgotten(), len(v.pins), v.Refused())
	}
	if fresh := v.TakePinned(); len(fresh) != 1 || fresh["new"] != identityOf(1).Public() || len(v.TakeForgotten()) > 0 {
		t.Errorf("%v", fresh)
	}
	for _, name := range []string{"self", "stays", "was here", "new"} { // those of the file have not been seen at all
		if _, ok := v.pins[name]; !ok || slices.Contains(gone, name) {
			t.Errorf("%s is forgotten", name)
		}
	}
	v = &View{}
	put("left last", 1)
	put("left first", 2)
	v.Pin("never seen", identityOf(1).Public())
	v.Delete("left first")
	v.Delete("left last")
	if v.forget(); !slices.Equal(v.TakeForgotten(), []string{"never seen", "left first", "left last"}) || len(v.pins) > 0 || len(v.TakePinned()) > 0 {
		t.Errorf("%v", v.pins)
	}
}
