package service

import (
	"net"
	"sync"
)

const (
	// maxAsking is how many are answered at a time. The next ones wait.
	maxAsking = 32
	// keptForRoot is how many of root's are answered besides.
	keptForRoot = 8
	// maxWaiting bounds those of ordinary users that wait. Further ones are refused.
	maxWaiting = 128
)

// places bounds how many are answered at a time. Ordinary users cannot take root's places.
type places struct {
	all, root, waiting chan struct{}
	done               chan struct{}
	once               sync.Once
}

func newPlaces() *places {
	return &places{
		all: make(chan struct{}, maxAsking), root: make(chan struct{}, keptForRoot),
		waiting: make(chan struct{}, maxWaiting), done: make(chan struct{}),
	}
}

// enter waits for a place for the user of number uid. leave, which may be called more than
// once, gives it back. ok is false if too many wait, or after end.
func (p *places) enter(uid int) (leave func(), ok bool) {
	root := p.root
	if uid != 0 {
		root = nil // which never has room
		select {
		case p.all <- struct{}{}:
			return sync.OnceFunc(func() { <-p.all }), true
		default:
		}
		select {
		case p.waiting <- struct{}{}:
			defer func() { <-p.waiting }()
		default:
			return nil, false
		}
	}
	select {
	case p.all <- struct{}{}:
		return sync.OnceFunc(func() { <-p.all }), true
	case root <- struct{}{}:
		return sync.OnceFunc(func() { <-p.root }), true
	case <-p.done:
		return nil, false
	}
}

// end has nobody wait any more.
func (p *places) end() { p.once.Do(func() { close(p.done) }) }

// bounded accepts a connection when there is a place for it. It is for a listener that cannot
// tell who connects.
type bounded struct {
	net.Listener
	places *places
}

func newBounded(l net.Listener) bounded { return bounded{l, newPlaces()} }

func (b bounded) Accept() (net.Conn, error) {
	leave, ok := b.places.enter(nobody)
	if !ok {
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		leave()
		return nil, err
	}
	return &placed{c, leave}, nil
}

// Close ends a call of Accept, even one that waits for a place.
func (b bounded) Close() error {
	b.places.end()
	return b.Listener.Close()
}

// placed gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
