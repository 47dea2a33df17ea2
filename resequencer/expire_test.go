package resequencer

import "testing"

func TestExpire_upToTheLastThatWaited(t *testing.T) {
	b, s := script(t, Config{Hold: 5 * ms},
		push(0, data(1), "a"),
		push(1*ms, data(6), ""), // its deadline is the first
		push(2*ms, data(3), ""),
		push(3*ms, data(7), ""), // contiguous behind it
		push(4*ms, data(9), ""), // behind another hole
		expire(6*ms, "cbd"),
		push(7*ms, data(2), "f"), // not waited for any more
		push(7*ms, data(8), "ge"))
	if s.TimedOut != 3 || s.Filled != 1 {
		t.Errorf("%+v", s)
	}
	if at, ok := b.NextDeadline(); ok {
		t.Errorf("a deadline at %v for nothing", at)
	}
}

func TestNextDeadline_isTheOldestHeld(t *testing.T) {
	b, _ := script(t, Config{Hold: 5 * ms},
		push(0, data(1), "a"), push(0, of(2, data(1)), "b"),
		push(1*ms, of(2, data(3)), ""), push(2*ms, data(3), ""))
	if at, ok := b.NextDeadline(); !ok || at != 6*ms {
		t.Errorf("%v, %v; want 6ms", at, ok)
	}
	late := of(2, data(2))
	b.Push(&late, 0, 3*ms, nil)
	if at, ok := b.NextDeadline(); !ok || at != 7*ms {
		t.Errorf("%v, %v; want 7ms", at, ok)
	}
}

func TestPush_timeRunningBackwardsKeepsDeadlinesInOrder(t *testing.T) {
	b, _ := script(t, Config{Hold: 5 * ms},
		push(10*ms, data(1), "a"),
		push(10*ms, data(3), ""),
		push(2*ms, data(5), ""),
		expire(14*ms, ""))
	if at, ok := b.NextDeadline(); !ok || at != 15*ms {
		t.Errorf("%v, %v; want 15ms", at, ok)
	}
	if got := string(b.Expire(15*ms, nil)); got != "bc" {
		t.Errorf("Expire: %q, want bc", got)
	}
}

func TestFlush_flowByFlow(t *testing.T) {
	b, _ := script(t, Config{},
		push(0, data(1), "a"), push(0, of(2, data(1)), "b"),
		push(0, of(2, data(5)), ""), push(0, data(3), ""), push(0, of(2, data(3)), ""), push(0, data(9), ""))
	if got := string(b.Flush(nil)); got != "ecdf" {
		t.Errorf("Flush: %q, want ecdf", got)
	}
	// Its holes are lost, too.
	late := data(2)
	if got := string(b.Push(&late, 'g', 0, nil)); got != "g" {
		t.Errorf("Push after Flush: %q", got)
	}
}
