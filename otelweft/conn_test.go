package otelweft

import (
	"net/netip"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"weft/stack"
)

// The shares of paths are of bytes: packets by one path may be larger than by another.
func TestAttributesOf_sharesAreOfBytes(t *testing.T) {
	at := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }
	s := stack.ConnStats{
		Paths:     []stack.PathStats{{Bounce: at(1), Packets: 90, Bytes: 1000}, {Bounce: at(2), Packets: 5, Bytes: 2000}},
		Elsewhere: stack.PathStats{Packets: 5, Bytes: 1000},
	}
	for _, a := range attributesOf(&s) {
		if a.Key == "weft.path_shares" {
			if got := a.Value.AsFloat64Slice(); !slices.Equal(got, []float64{0.25, 0.5}) {
				t.Errorf("the shares are %v", got)
			}
			return
		}
	}
	t.Error("no shares")
}

// unrecorded is a span that was not sampled.
type unrecorded struct {
	noop.Span
	t     *testing.T
	ended int
}

func (u *unrecorded) SetAttributes(...attribute.KeyValue) {
	u.t.Error("attributes are made for nobody")
}
func (u *unrecorded) End(...trace.SpanEndOption) { u.ended++ }

// closes is a connection that is closed alone.
type closes struct{ stack.TCPConn }

func (closes) Close() error { return nil }

// A span that nobody records costs no look at the connection.
func TestConn_unrecordedSpan(t *testing.T) {
	span := &unrecorded{t: t}
	c := &conn{TCPConn: closes{}, host: nil, span: span} // to ask no Host would panic
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if span.ended != 1 {
		t.Errorf("the span ended %d times", span.ended)
	}
}
