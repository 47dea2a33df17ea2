package fabric

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/kernel"
	"weft/internal/kernel/kerneltest"
)

// With a full table no Step does more than a part: it reads, and later deletes, so many flows at
// most, until all are read, and forgotten.
func TestClassifier_stepsAreShort(t *testing.T) {
	kerneltest.NeedRoot(t)
	top := kerneltest.Topology(t, "fat-tree:k=4")
	p := twoLevelPlan(t, top, kerneltest.Node(t, top, "e0.1").ID)
	ns := portedNamespace(t, p.Node, p)
	applyNamed(t, ns, p)
	err := kernel.InNamespace(ns, func() error {
		c, err := OpenClassifier(p, "classifier")
		if err != nil {
			return err
		}
		defer c.Detach()
		keys, states := make([]classifyKey, 65536), make([]classifyState, 65536)
		for i := range keys {
			keys[i] = classifyKey{[4]byte{10, 0, 1, 2}, [4]byte{10, 3, byte(i >> 8), byte(i)}}
			states[i].Bytes = uint64(i)
		}
		flows := c.program.Maps[classifyMapFlows]
		if n, err := flows.BatchUpdate(keys, states, nil); n != len(keys) {
			return fmt.Errorf("%d flows: %w", n, err)
		}
		// steps counts Steps until done, none of which changes a number by more than a part.
		steps := func(now time.Duration, number func(ClassifierStats) int, done func(ClassifierStats) bool) (n int) {
			before, _ := c.Stats()
			for ; n < 100; n++ {
				if err := c.Step(now); err != nil {
					t.Error(err)
				}
				after, _ := c.Stats()
				if number(after)-number(before) > stepFlows {
					t.Errorf("a step has changed %d flows, want at most %d", number(after)-number(before), stepFlows)
				}
				if done(after) {
					return n + 1
				}
				before = after
			}
			return n
		}
		known := func(s ClassifierStats) int { return s.Known }
		unknown := func(s ClassifierStats) int { return -s.Known }
		evicted := func(s ClassifierStats) int { return int(s.Evicted) }
		if err := c.Step(0); err != nil {
			t.Error(err)
		}
		parts := len(keys) / stepFlows
		n := steps(time.Second, known, func(s ClassifierStats) bool { return s.Moved > 0 })
		if s, _ := c.Stats(); n < parts || n > 2*parts || s.Known != len(keys) {
			t.Errorf("%d steps read %d flows", n, s.Known)
		}
		n = steps(12*time.Second, unknown, func(s ClassifierStats) bool { return s.Evicted > 0 })
		n += steps(12*time.Second, evicted, func(s ClassifierStats) bool { return int(s.Evicted) == len(keys) })
		if n < 2*parts-1 || n > 3*parts {
			t.Errorf("%d steps read and forgot all", n)
		}
		if err := flows.NextKey(nil, &keys[0]); !errors.Is(err, ebpf.ErrKeyNotExist) {
			t.Errorf("flows are left: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
