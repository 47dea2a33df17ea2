package tcp

import (
	"gvisor.dev/gvisor/pkg/sync"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// maxInline is how many connections are processed inline at a time. What comes for more
	// is work for several processors.
	maxInline = 8
	// maxInlinePayload is the longest payload of a segment that is processed inline, in bytes.
	maxInlinePayload = 4 << 10
)

// Inline processes segments in the goroutine that delivers packets to a stack, in place of a
// processor. These are short segments with payload, each the only one that waits for its
// established connection: requests and answers. A connection with data to send is not processed
// inline: an acknowledgement may let it send a window of that, for which the next packets would
// wait. Collect and Process belong to one goroutine at a time, which holds none of netstack's locks.
type Inline struct {
	d *dispatcher

	mu    sync.Mutex
	on    bool // between Collect and Process
	count int  // of ready
	ready [maxInline]*Endpoint
}

// InlineOf returns the Inline of a stack that has this package's TCP.
func InlineOf(s *stack.Stack) *Inline {
	return &s.TransportProtocolInstance(ProtocolNumber).(*protocol).dispatcher.inline
}

// Collect makes such segments wait for Process.
func (i *Inline) Collect() {
	i.mu.Lock()
	i.on = true
	i.mu.Unlock()
}

// take reports whether s, which was just queued, waits for Process. Else a processor must be
// called.
func (i *Inline) take(ep *Endpoint, s *segment) bool {
	n := s.payloadSize()
	if n == 0 || n > maxInlinePayload || ep.EndpointState() != StateEstablished || !ep.segmentQueue.alone(s) {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.on || i.count == maxInline {
		return false
	}
	i.ready[i.count] = ep
	i.count++
	return true
}

// Process processes what was collected. A connection that is in use, has data to send, or gets
// more meanwhile, is left to a processor.
func (i *Inline) Process() {
	i.mu.Lock()
	i.on = false
	ready, n := i.ready, i.count
	i.ready, i.count = [maxInline]*Endpoint{}, 0
	i.mu.Unlock()
	for _, ep := range ready[:n] {
		if ep.segmentQueue.empty() {
			continue // a processor was faster
		}
		if state := ep.EndpointState(); state.connected() && state != StateTimeWait && !ep.hasToSend() {
			handleConnected(ep)
		}
		if !ep.segmentQueue.empty() && !ep.isOwnedByUser() {
			i.d.selectProcessor(ep.TransportEndpointInfo.ID).queueEndpoint(ep)
		}
	}
}

// hasToSend reports whether an acknowledgement may let e send data: some that was never sent, or
// some again. Of a connection that is in use it is true.
func (e *Endpoint) hasToSend() bool {
	if !e.TryLock() {
		return true
	}
	defer e.mu.Unlock()
	return e.snd.writeNext != nil || e.snd.FastRecovery.Active
}
