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
	set := func(latest uint8, also ...uint8) {
		t.Helper()
		var others []UDPKey
		for _, id := range also {
			others = append(others, key(id))
		}
		if err := o.SetKeys(key(latest), others...); err != nil {
			t.Fatal(err)
		}
	}
	set(2, 1)
	check("both", old, nil)
	check("both", next, nil)
	// Counters are equal, but each key has its own window.
	if _, _, err := o.Open(sealed(t, newSealer(t, 1), plainHeader, inner6(0))); err != ErrUDPReplay {
		t.Errorf("a replay under the old key: %v", err)
	}
	set(2)
	check("retired", old, ErrUDPKey)
	check("retired", next, nil)
	set(3, 2)
	set(1, 3, 4, 2)
	check("four", next, nil)
	set(1, 3)
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
	if err := newOpener(t, 1).SetKeys(key(1), key(1)); err == nil || !strings.Contains(err.Error(), "key ID 1") {
		t.Errorf("two keys of the same ID: %v", err)
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

// Keys change step by step while datagrams are on their way. What was seen stays seen
// as long as its key does.
func TestOpener_SetKeysRemembers(t *testing.T) {
	inner := unhex(goldenInner)
	one, two := newSealer(t, 1), newSealer(t, 2)
	o := newOpener(t, 1)
	accepts := func(b []byte, want error) {
		t.Helper()
		if _, _, err := o.Open(b); err != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	set := func(key UDPKey, also ...UDPKey) {
		t.Helper()
		if err := o.SetKeys(key, also...); err != nil {
			t.Fatal(err)
		}
	}
	first, second := sealed(t, one, UDPHeader{}, inner), sealed(t, two, UDPHeader{}, inner)
	late := sealed(t, one, UDPHeader{}, inner)
	accepts(first, nil)
	k1, k2 := key(1), key(2)
	set(k1, k2)
	accepts(first, ErrUDPReplay)
	accepts(second, nil)
	set(k2, k1)
	accepts(first, ErrUDPReplay)
	accepts(second, ErrUDPReplay)
	accepts(late, nil)
	set(k2)
	accepts(second, ErrUDPReplay)
	accepts(sealed(t, one, UDPHeader{}, inner), ErrUDPKey)
	// What cannot be leaves all as it is.
	other := key(3)
	other.ID = 2
	for _, bad := range []func() error{
		func() error { return o.SetKeys(k1, k1) },
		func() error { return o.SetKeys(k2, other) },
		func() error { return o.SetKeys(UDPKey{ID: 9}) },
		func() error { return o.SetKeys(k1, UDPKey{ID: 9}) },
		func() error { return o.SetKeys(k2, key(4), key(5), key(6), key(7)) },
	} {
		if bad() == nil {
			t.Error("no error")
		}
	}
	accepts(sealed(t, two, UDPHeader{}, inner), nil)
}

// Somebody sets the clock while datagrams are sent and across starts. Without a memory
// of the former start one whose clock went back is refused; once the clock is right
// again, it is heard.
func TestSealer_clockJumps(t *testing.T) {
	inner := unhex(goldenInner)
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Hour, time.Hour, 24 * time.Hour} {
		s, o := newSealer(t, 1), newOpener(t, 1)
		for i := range 100 {
			s.Follow(startOfTime.Add(time.Duration(i/50) * jump).Add(time.Duration(i) * time.Second))
			if _, _, err := o.Open(sealed(t, s, UDPHeader{}, inner)); err != nil {
				t.Fatalf("%v: datagram %d: %v", jump, i, err)
			}
		}
		again, err := NewSealer(key(1), "a", "b", startOfTime.Add(jump), [3]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = o.Open(sealed(t, again, UDPHeader{}, inner)); jump < 0 && err != ErrUDPReplay {
			t.Errorf("%v: started again: %v", jump, err)
		}
		again.Follow(startOfTime.Add(24*time.Hour + time.Hour)) // set right, later
		if _, _, err := o.Open(sealed(t, again, UDPHeader{}, inner)); err != nil {
			t.Errorf("%v: started again, and the clock was set right: %v", jump, err)
		}
	}
}
