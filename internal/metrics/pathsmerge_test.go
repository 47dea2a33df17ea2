package metrics

import (
	"testing"
	"time"

	"weft/liveness"
)

// A boomerang that is not probed yet says nothing of the way up that it shares, whichever of
// them comes first.
func TestUp_addLeavesOutWhatIsNotKnown(t *testing.T) {
	unknown := liveness.PathHealth{Tally: new(liveness.Tally)}
	probed := liveness.PathHealth{RTT: time.Millisecond, Loss: 0.25, Tally: new(liveness.Tally)}
	silent := liveness.PathHealth{Loss: 1, Tally: new(liveness.Tally)}
	for i, list := range [][]*liveness.PathHealth{{&unknown, &probed, &silent}, {&silent, &probed, &unknown}, {&probed, &unknown, &silent}} {
		var u up
		for _, p := range list {
			u.add(p)
		}
		if u.rtt != time.Millisecond || u.loss != 0.25 {
			t.Errorf("order %d: RTT %v, loss %v; want 1ms, 0.25", i, u.rtt, u.loss)
		}
	}
}
