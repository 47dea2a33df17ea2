package fct

import (
	"context"
	"errors"
	"testing"
	"time"

	"weft/bench/sim/workload"
)

// Idleness is told when the last flow begins, and not at the end of the run, which here never
// comes by itself. Flows that will not begin are not waited for.
func TestPlay_tellsWhenTheLastFlowBegins(t *testing.T) {
	s := session(t, 20)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := 0
	_, _, err := play(ctx, s, plan{after: []int{-1, 0, -1}, flows: []workload.Flow{
		{Src: 0, Dst: 2, Bytes: 1}, {Src: 1, Dst: 3, Bytes: 1 << 40}, {Src: 0, Dst: 3, Bytes: 1 << 40},
	}}, 24*time.Hour, func() { told++; cancel() })
	if !errors.Is(err, context.Canceled) || told != 1 {
		t.Errorf("told %d times, %v", told, err)
	}
	told = 0
	all, _, err := play(t.Context(), s, plan{after: []int{-1, 0}, flows: []workload.Flow{{Src: 0, Dst: 2, Bytes: 1 << 30}, {Src: 1, Dst: 3, Bytes: 1}}}, time.Second, func() { told++ })
	if err != nil || told != 1 || all[1].begun {
		t.Errorf("told %d times, %+v, %v", told, all, err)
	}
}

// A run that is as busy as can be while flows begin and idle behind is busy.
func TestIdleness_endsWithTheLastBeginning(t *testing.T) {
	i := newIdleness()
	i.begin = i.begin.Add(-leastIdleTime)
	i.begun()
	if !i.ended {
		t.Error("the run goes on counting")
	}
	i = newIdleness()
	i.begin = time.Now().Add(time.Hour)
	if i.begun(); i.ended {
		t.Error("a few ticks of the kernel's clock are believed")
	}
}
