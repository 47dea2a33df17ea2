package prober

import (
	"sync"
	"testing"
	"time"

	"weft/encap"
)

// All that is asked of a Prober and a Sampler at once while both work, for the race
// detector, and while they end.
func TestProber_isSharedByMany(t *testing.T) {
	l := newLab(t)
	h := open1(t, l, "h0.0.2", encap.CarrierIPIP)
	s := sample(t, l, "h0.0.3", encap.CarrierIPIP)
	whole := l.Config.Topology
	far, err := whole.LinkByName("a0.2-3.0")
	if err != nil {
		t.Fatal(err)
	}
	failed := whole.Without(far.ID)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for _, f := range []func(){
		func() { h.Stats() },
		func() { h.Paths() },
		func() { h.Topology() },
		func() { h.down() },
		func() { s.Stats() },
		func() { s.Destinations() },
		func() {
			if err := h.SetTopology(failed); err != nil {
				t.Error(err)
			}
			if err := h.SetTopology(whole); err != nil {
				t.Error(err)
			}
			s.SetTopology(failed)
			s.SetTopology(whole)
		},
	} {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					f()
				}
			}
		})
	}
	eventually(t, func() (string, bool) { return "no probe has come home", h.Stats().Watcher.Answered > 20 })
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Millisecond) // who asks later gets the last answer
	close(stop)
	all.Wait()
}
