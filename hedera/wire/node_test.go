package wire

import (
	"net/netip"
	"testing"
)

func TestTalk_reportsGoToTheLeaderAndPlacementsBack(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.poll()
	if c.report(flowOf(1, false)) {
		t.Error("a report without a leader")
	}
	c.desks[0].Lead(false, serverAt[1], 7)
	c.desks[1].Lead(true, serverAt[1], 7)
	c.poll()
	if at, epoch := c.node.Leader(c.now); at != serverAt[1] || epoch != 7 {
		t.Fatalf("the leader is %v since %d", at, epoch)
	}
	var want []Flow
	for n := range 300 {
		want = append(want, flowOf(n, n%2 == 0))
	}
	if !c.report(want...) {
		t.Fatal("not sent")
	}
	if c.deliver(); len(c.got) != len(want) {
		t.Fatalf("%d of %d flows came", len(c.got), len(want))
	}
	for i, f := range c.got {
		if f != want[i] {
			t.Fatalf("flow %d is %+v, want %+v", i, f, want[i])
		}
	}
	if !c.desks[1].Place(hostAddr, somePlaces, c.now, c.from(serverAt[1])) {
		t.Fatal("not placed")
	}
	if c.deliver(); len(c.told) != 2 || c.told[0] != somePlaces[0] || c.told[1] != somePlaces[1] {
		t.Errorf("placements %+v, want %+v", c.told, somePlaces)
	}
	if c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0])) {
		t.Error("a server that does not lead places")
	}
	// The leader says nothing any more: nobody leads.
	c.now += 2 * silence
	if c.report(flowOf(1, false)) {
		t.Error("a report to a leader that is silent")
	}
}

// A leader that is none any more, and does not know, is not believed once its successor was
// heard.
func TestTalk_anEarlierEpochIsRefused(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.poll()
	c.desks[0].Lead(true, serverAt[0], 7)
	c.poll()
	c.desks[1].Lead(true, serverAt[1], 8)
	c.poll()
	if at, _ := c.node.Leader(c.now); at != serverAt[1] {
		t.Errorf("reports go to %v", at)
	}
	c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0]))
	if c.deliver(); len(c.told) > 0 || c.node.Rejects()[RejectEpoch] != 1 {
		t.Errorf("the deposed leader places %v; rejected %v", c.told, c.node.rejects.ByName())
	}
	c.desks[1].Place(hostAddr, somePlaces, c.now, c.from(serverAt[1]))
	if c.deliver(); len(c.told) != 2 {
		t.Error("the leader's placements do not come")
	}
	// etcd has been set up anew, and its epochs begin again.
	c.desks[1].Lead(false, netip.AddrPort{}, 0)
	c.desks[0].Lead(true, serverAt[0], 2)
	c.now += forgetEpoch
	c.poll()
	if at, epoch := c.node.Leader(c.now); at != serverAt[0] || epoch != 2 {
		t.Errorf("the leader is %v since %d", at, epoch)
	}
}

// All that was ever said is said again, in any order: nothing of it counts. So it is when
// either side has begun anew.
func TestTalk_replaysAreRefused(t *testing.T) {
	for name, anew := range map[string]func(c *talk){
		"nobody": func(*talk) {},
		"server": func(c *talk) { c.desks[0] = c.newDesk(secret); c.desks[0].Lead(true, serverAt[0], 7) },
		"node":   func(c *talk) { c.newNode(secret) },
	} {
		c := newTalk(t, secret, secret)
		c.desks[0].Lead(true, serverAt[0], 7)
		var all []said
		for range 3 {
			all = append(all, c.poll()...)
			c.report(flowOf(1, false))
			c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0]))
			all = append(all, c.deliver()...)
		}
		if len(c.got) != 3 || len(c.told) != 4 {
			t.Fatalf("%d flows, %d placements before", len(c.got), len(c.told))
		}
		anew(c)
		for range 4 { // a new session is agreed on
			c.poll()
		}
		c.got, c.told = nil, nil
		for range 3 {
			for _, i := range c.rng.Perm(len(all)) {
				c.hear(all[i])
			}
			c.said = nil // the answers to what was repeated get lost
		}
		if len(c.got) > 0 || len(c.told) > 0 {
			t.Errorf("%s has begun anew: of what is repeated %d flows and %d placements count", name, len(c.got), len(c.told))
		}
		for range 4 {
			c.poll()
		}
		c.report(flowOf(2, false))
		c.deliver()
		c.desks[0].Place(hostAddr, somePlaces, c.now, c.from(serverAt[0]))
		if c.deliver(); len(c.got) != 1 || len(c.told) != 2 {
			t.Errorf("%s has begun anew: then %d flows, %d placements come, want 1 and 2", name, len(c.got), len(c.told))
		}
	}
}

// The first answer gets lost: the node is answered again.
func TestTalk_aLostAnswerIsRepeated(t *testing.T) {
	c := newTalk(t, secret, secret)
	c.desks[0].Lead(true, serverAt[0], 1)
	for range 3 {
		c.now += HelloEvery
		c.node.Poll(c.now, c.from(hostAt))
		for _, m := range c.said {
			c.hear(m)
		}
		c.said = nil
	}
	c.poll()
	c.poll()
	if !c.report(flowOf(1, false)) {
		t.Error("no leader is known")
	}
}
