package switchd

import (
	"sync"
	"testing"
	"time"

	"weft/lab"
)

// All that is asked of an agent at once while a link comes and goes, for the race
// detector, and while it ends.
func TestAgent_isSharedByMany(t *testing.T) {
	l := upLab(t, "r", "fat-tree:k=4", "e0.0", "a0.2", "a0.3")
	c := fast
	c.Routes = true
	l.start(c)
	l.adjacent()
	a := l.agents[l.id("e0.0")]
	var all sync.WaitGroup
	stop := make(chan struct{})
	for _, f := range []func(){
		func() { a.Status() },
		func() { a.Topology() },
		func() { a.late() },
		func() {
			if err := a.SetKeys(c.Keys); err != nil {
				t.Error(err)
			}
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
	const name = "e0.0-a0.2"
	link := l.link(name)
	for range 3 {
		if _, err := l.Fail(name, lab.FailLoud); err != nil {
			t.Fatal(err)
		}
		l.within("the link is down", func() bool { return !a.Topology().Live(link) })
		if _, err := l.Heal(name); err != nil {
			t.Fatal(err)
		}
		l.within("the link is up", func() bool { return a.Topology().Live(link) })
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(5 * time.Millisecond) // who asks later gets the last answer
	close(stop)
	all.Wait()
}
