package otelweft

import (
	"net"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"weft/stack"
)

// conn is a connection with a span.
type conn struct {
	stack.TCPConn
	host *stack.Host
	span trace.Span
	once sync.Once
}

// NetConn returns the Host's connection, for stack.Host.ConnStats.
func (c *conn) NetConn() net.Conn { return c.TCPConn }

// Close ends the span with what the connection has done, and closes the connection.
func (c *conn) Close() error {
	c.once.Do(func() {
		if c.span.IsRecording() { // else nobody reads them
			if s, err := c.host.ConnStats(c.TCPConn); err == nil {
				c.span.SetAttributes(attributesOf(&s)...)
			}
		}
		c.span.End()
	})
	return c.TCPConn.Close()
}

// attributesOf are what ConnStats tells.
func attributesOf(s *stack.ConnStats) []attribute.KeyValue {
	count := func(key string, n uint64) attribute.KeyValue { return attribute.Int64(key, int64(n)) }
	list := []attribute.KeyValue{
		count("weft.sent_bytes", s.Sent), count("weft.received_bytes", s.Received),
		count("weft.retransmits", s.Retransmits), count("weft.timeouts", s.Timeouts),
		count("weft.out_of_order", s.OutOfOrder), count("weft.held", s.Held),
		attribute.Float64("weft.rtt", s.RTT.Seconds()),
	}
	all := s.Elsewhere.Bytes
	for _, p := range s.Paths {
		all += p.Bytes
	}
	if all == 0 || len(s.Paths) == 0 {
		return list
	}
	var names []string
	var shares []float64
	for _, p := range s.Paths {
		names, shares = append(names, p.Bounce.String()), append(shares, float64(p.Bytes)/float64(all))
	}
	return append(list, attribute.StringSlice("weft.paths", names), attribute.Float64Slice("weft.path_shares", shares))
}
