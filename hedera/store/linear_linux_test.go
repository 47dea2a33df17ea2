package store

import (
	"os"
	"strconv"
	"testing"
	"time"

	"weft/internal/slowtest"
)

// killsVariable asks for so many kills, such as 200.
const killsVariable = "WEFT_HEDERA_KILLS"

// Three schedulers, three members of etcd, leaders and members killed at random under load:
// what is read and written is linearizable, and no leader of an earlier epoch writes after
// a later one has begun.
func TestStore_isLinearizableWhileLeadersAndMembersDie(t *testing.T) {
	slowtest.System(t)
	kills := 3
	if v := os.Getenv(killsVariable); v != "" {
		var err error
		if kills, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	r := newTrial(t, false)
	if !r.run(kills) {
		t.Error("the history is not linearizable")
	}
	if r.terms < kills || r.writes < 10*kills {
		t.Errorf("%d terms, %d writes in %d kills: the test shows nothing", r.terms, r.writes, kills)
	}
	var sum, most time.Duration
	for _, g := range r.gaps {
		sum, most = sum+g, max(most, g)
	}
	t.Logf("%d kills: %d terms, %d writes, %d of deposed leaders refused, %d of unknown outcome, %d operations; failover %v on average, %v at most",
		kills, r.terms, r.writes, r.refused, r.unknown, len(r.h.ops), (sum / time.Duration(max(1, len(r.gaps)))).Round(time.Millisecond), most.Round(time.Millisecond))
}

// The same without the guard of writes: the check sees it.
func TestStore_withoutGuardIsCaught(t *testing.T) {
	slowtest.System(t)
	r := newTrial(t, true)
	r.load = 200 // so that both have written after the second one has begun
	if r.run(1) {
		t.Error("a deposed leader writes, and the check does not see it")
	}
}
