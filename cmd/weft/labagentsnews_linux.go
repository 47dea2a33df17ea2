package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"weft/topology"
)

// agentNews prints what is new in the snapshots of many agents: a link that the first agent
// takes for down, and a link that no agent takes for down any more. It is safe for
// concurrent use.
type agentNews struct {
	w        io.Writer
	topology *topology.Topology
	gone     func() bool // the lab is no more: its links are no news

	mu    sync.Mutex
	views map[topology.NodeID]*topology.Topology
	down  map[topology.LinkID]int // how many take it for down
}

func newAgentNews(w io.Writer, t *topology.Topology, gone func() bool) *agentNews {
	return &agentNews{w: w, topology: t, gone: gone, views: make(map[topology.NodeID]*topology.Topology), down: make(map[topology.LinkID]int)}
}

// say prints a line.
func (n *agentNews) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.line(format, args...)
}

// line prints one, with n.mu held.
func (n *agentNews) line(format string, args ...any) {
	fmt.Fprintf(n.w, format+"\n", args...)
}

// from returns what takes the snapshots of a switch's agent.
func (n *agentNews) from(id topology.NodeID) func(*topology.Topology) {
	return func(t *topology.Topology) {
		n.mu.Lock()
		defer n.mu.Unlock()
		before := n.views[id]
		if before == nil {
			before = n.topology
		}
		n.views[id] = t
		changed, _ := before.Diff(t)
		for _, l := range changed {
			n.count(l, t.Live(l))
		}
	}
}

// count counts that an agent takes a link for up, or down, and has not before.
func (n *agentNews) count(l topology.LinkID, up bool) {
	word := "down"
	if up {
		n.down[l]--
		word = "up"
	} else {
		n.down[l]++
	}
	if first, last := !up && n.down[l] == 1, up && n.down[l] == 0; (first || last) && !n.gone() {
		n.line("%s  %-4s  %s", time.Now().Format("15:04:05.000"), word, n.topology.LinkName(l))
	}
}
