package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"weft/third_party/netstack/tcp"
)

// Shutdown ends the Host without losing written data. It closes the listeners; from then
// on Listen fails with net.ErrClosed. It waits until the program has closed every TCP
// connection, all written data is acknowledged and the peers have closed their side. Then
// it does what Close does. Meanwhile open connections may be used, and new ones dialled.
// It does not wait for UDP sockets. Pools that keep idle connections must be closed by
// the program (http.Server.Shutdown, http.Transport.CloseIdleConnections).
//
// If ctx ends first, Shutdown resets the remaining connections and returns an error that
// wraps ctx's and says how many there were. If the device fails or Close is called
// meanwhile, it returns that cause. With Config.Simulation it does not wait: it fails
// with EAGAIN until all is done.
func (h *Host) Shutdown(ctx context.Context) error {
	if err := h.stopListening(); err != nil {
		return err
	}
	wait := time.Millisecond
	for {
		left := h.unfinished()
		if err := h.ended(); err != nil {
			return errors.Join(err, h.Close())
		}
		if left == 0 {
			return h.Close()
		}
		if h.virtual != nil {
			return syscall.EAGAIN
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("stack: Shutdown: %d TCP connections were not finished: %w", left, ctx.Err()), h.Close())
		case <-time.After(wait):
			wait = min(2*wait, maxShutdownWait)
		}
	}
}

// maxShutdownWait is the longest time between two looks at what is left. To look
// takes a few milliseconds for 100,000 connections.
const maxShutdownWait = 100 * time.Millisecond

// stopListening closes the listeners and lets no new ones be made.
func (h *Host) stopListening() error {
	h.mu.Lock()
	h.draining = true
	var listeners []*socket
	for s := range h.sockets {
		if s.listens {
			listeners = append(listeners, s)
		}
	}
	h.mu.Unlock()
	if err := h.ended(); err != nil {
		return errors.Join(err, h.Close())
	}
	for _, s := range listeners {
		s.shut(s.ep.Close)
	}
	return nil
}

// startListening begins to accept connections, unless Shutdown came first.
func (h *Host) startListening(s *socket) error {
	h.mu.Lock()
	s.listens = true
	draining := h.draining
	h.mu.Unlock()
	if draining {
		return net.ErrClosed
	}
	return s.result(s.ep.Listen(backlog))
}

// unfinished counts the TCP connections that the program, this end or the peer
// has not done with. One in TIME-WAIT is done with: all that it had to say has
// been acknowledged, and so is what the peer said.
func (h *Host) unfinished() (n int) {
	for _, e := range h.net.RegisteredEndpoints() {
		if ep, ok := e.(*tcp.Endpoint); ok && lives(ep.EndpointState()) {
			n++
		}
	}
	return n
}

func lives(s tcp.EndpointState) bool {
	switch s {
	case tcp.StateSynSent, tcp.StateSynRecv, tcp.StateConnecting, tcp.StateEstablished,
		tcp.StateFinWait1, tcp.StateFinWait2, tcp.StateCloseWait, tcp.StateClosing, tcp.StateLastAck:
		return true
	}
	return false
}
