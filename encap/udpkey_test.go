package encap

import (
	"strings"
	"testing"
	"time"
)

func TestOpener_rollsItsKeysOver(t *testing.T) {
	o := newOpener(t, 1)
	old, next, third := newSealer(t, 1), newSealer(t, 2), newSealer(t, 3)
	check := func(when string, s *Sealer, want error) {
		t.Helper()
		if _, _, err := o.Open(sealed(t, s, plainHeader, inner6(0))); err != want {
			t.Errorf("%s, key %d: %v, want %v", when, s.id, err, want)
		}
	}
	check("first", old, nil)
	check("first", next, ErrUDPKey)
	if err := o.Roll(key(2)); err != nil {
		t.Fatal(err)
	}
	check("both", old, nil)
	check("both", next, nil)
	// Counters are equal, but each key has its own window.
	if _, _, err := o.Open(sealed(t, newSealer(t, 1), plainHeader, inner6(0))); err != ErrUDPReplay {
		t.Errorf("a replay under the old key: %v", err)
	}
	o.Retire()
	check("retired", old, ErrUDPKey)
	check("retired", next, nil)
	if err := o.Roll(key(3)); err != nil {
		t.Fatal(err)
	}
	if err := o.Roll(key(1)); err != nil {
		t.Fatal(err)
	}
	check("rolled twice", next, ErrUDPKey)
	check("rolled twice", third, nil)
}

func TestUDPKey_refusesWhatIsNoSecret(t *testing.T) {
	for _, c := range []struct {
		key      UDPKey
		from, to string
		names    string
	}{
		{UDPKey{ID: 7}, "a", "b", "Secret of key 7"},
		{key(1), "a", "a", `"a"`},
		{key(1), "", "", `""`},
		{key(1), strings.Repeat("x", 256), "a", "255"},
	} {
		if _, err := NewOpener(c.key, c.from, c.to); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("NewOpener(%d, %.9q, %q): %v, want an error with %q", c.key.ID, c.from, c.to, err, c.names)
		}
		if _, err := NewSealer(c.key, c.from, c.to, startOfTime, [3]byte{}); err == nil {
			t.Errorf("NewSealer(%d, %.9q, %q): no error", c.key.ID, c.from, c.to)
		}
	}
	if _, err := NewSealer(key(1), "a", "b", time.Time{}, [3]byte{}); err == nil || !strings.Contains(err.Error(), "clock") {
		t.Errorf("NewSealer at the year 1: %v", err)
	}
	if err := newOpener(t, 1).Roll(key(1)); err == nil || !strings.Contains(err.Error(), "key ID 1") {
		t.Errorf("Roll to the same ID: %v", err)
	}
	// Names are told apart even where they run together.
	ab, err := NewSealer(key(1), "x", "yz", startOfTime, [3]byte{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOpener(key(1), "xy", "z")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.Open(sealed(t, ab, plainHeader, inner6(0))); err != ErrUDPForged {
		t.Errorf("from x to yz taken as from xy to z: %v", err)
	}
}
