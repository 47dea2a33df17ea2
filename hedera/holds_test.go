package hedera

import (
	"testing"
	"time"
)

// A placement holds until its flow ends, moves to another reporter, or loses its path.
func TestLoop_holds(t *testing.T) {
	f := fabricOf(t, kinds[0])
	edge := f.t.Node(f.t.EdgeOf(0)).Addr
	for name, test := range map[string]struct {
		at   time.Duration
		do   func(l *Loop, a Assignment) error
		want bool
	}{
		"nothing happens": {at: 3 * time.Second, want: true},
		"it has ended":    {at: 3*time.Second + 1},
		"its path has died": {do: func(l *Loop, a Assignment) error {
			now, err := NewClos(f.t.Without(f.t.Paths(0, 8).Path(a.Path).Links[1]))
			if err != nil {
				return err
			}
			return l.SetFabric(now)
		}},
		"another path has died": {want: true, do: func(l *Loop, a Assignment) error {
			now, err := NewClos(f.t.Without(f.t.Paths(0, 8).Path(f.Paths(0, 8) - 1 - a.Path).Links[1]))
			if err != nil {
				return err
			}
			return l.SetFabric(now)
		}},
		"another node reports it": {at: 2 * time.Second, do: func(l *Loop, a Assignment) error {
			return l.Report(edge, a.Tuple, gigabit, 2*time.Second)
		}},
	} {
		l := newLoop(t, f, "first-fit", 0)
		if err := l.Report(f.t.Node(0).Addr, tupleOf(f, 0, 8, 1), gigabit, 0); err != nil {
			t.Fatal(err)
		}
		r := l.Round(0)
		if len(r.Placed) != 1 || !l.Holds(r.Placed[0], 0) {
			t.Fatalf("%s: placed %v", name, r.Placed)
		}
		other := r.Placed[0]
		if other.Path++; l.Holds(other, 0) {
			t.Errorf("%s: a path that is not the flow's holds", name)
		}
		if test.do != nil {
			if err := test.do(l, r.Placed[0]); err != nil {
				t.Fatal(err)
			}
		}
		if got := l.Holds(r.Placed[0], test.at); got != test.want {
			t.Errorf("%s: holds: %v, want %v", name, got, test.want)
		}
	}
}
