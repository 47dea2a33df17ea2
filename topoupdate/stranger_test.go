package topoupdate

import (
	"testing"
	"time"
)

// Who speaks in a neighbour's place is known while it does, if its MAC is right, and nothing of
// it is believed.
func TestNeighbours_stranger(t *testing.T) {
	c := newCouple(t, "fat-tree:k=4", "c1.1", Keys{List: []Key{testKey}})
	strange := func() Neighbour { return c.agent.Neighbours()[0] }
	other := mustLookup(t, c.top, "a3.3")
	speak := func() []byte {
		p := c.peers[0]
		m := &message{header: header{kind: typeHello}, hello: hello{interval: time.Second, multiplier: 3}}
		m.sender, m.senderPort, m.session, m.counter = other, 2, p.session+1, 1
		return m.encode(c.top.Fingerprint(), c.ring, c.now)
	}
	if n := strange(); n.Strange || !n.Alive {
		t.Fatalf("before: %+v", n)
	}
	forged := speak()
	forged[len(forged)-1] ^= 1
	c.agent.Receive(0, forged, c.now)
	if strange().Strange {
		t.Error("a message whose MAC is wrong is taken for a stranger's")
	}
	c.tick(c.now + time.Second)
	c.greet()
	c.agent.Receive(0, speak(), c.now)
	if n := strange(); !n.Strange || n.Stranger != other || n.StrangerPort != 2 || !n.Alive {
		t.Errorf("while a3.3 speaks: %+v", n)
	}
	c.tick(c.now + strangerLasts)
	if strange().Strange {
		t.Error("it has been silent for long")
	}
}
