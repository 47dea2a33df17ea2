package fct

import "sync"

// startline makes flows that are due at one instant begin together: each waits there until all
// have come, and the instant has.
type startline struct {
	ready sync.WaitGroup
	open  chan struct{}
}

func newStartline() *startline { return &startline{open: make(chan struct{})} }

// wait is called of each flow that ready has been told of.
func (s *startline) wait() {
	s.ready.Done()
	<-s.open
}
