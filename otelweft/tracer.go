package otelweft

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"weft/stack"
)

// spanName is that of all spans.
const spanName = "weft.connection"

// Tracer makes spans of a Host's connections. It is safe for concurrent use.
type Tracer struct {
	host   *stack.Host
	tracer trace.Tracer
}

// New returns a Tracer of h, whose spans go to p; nil: to OpenTelemetry's global provider.
func New(h *stack.Host, p trace.TracerProvider) *Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return &Tracer{h, p.Tracer("weft/otelweft")}
}

// DialContext is stack.Host.DialContext with a span. A connection of TCP is a stack.TCPConn, and its
// NetConn is the Host's own.
func (t *Tracer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return t.host.DialContext(ctx, network, address)
	}
	ctx, span := t.tracer.Start(ctx, spanName, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("network.transport", "tcp")))
	if name, port, err := net.SplitHostPort(address); err == nil {
		span.SetAttributes(attribute.String("server.address", name))
		if n, err := net.LookupPort("tcp", port); err == nil {
			span.SetAttributes(attribute.Int("server.port", n))
		}
	}
	c, err := t.host.DialContext(ctx, network, address)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
		span.End()
		return nil, err
	}
	span.AddEvent("connected")
	return t.traced(c, span), nil
}

// Listener returns l, a listener of the Host, whose connections have spans.
func (t *Tracer) Listener(l net.Listener) net.Listener { return listener{l, t} }

type listener struct {
	net.Listener
	tracer *Tracer
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	_, span := l.tracer.tracer.Start(context.Background(), spanName, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("network.transport", "tcp")))
	if a, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		span.SetAttributes(attribute.String("client.address", a.Addr().String()), attribute.Int("client.port", int(a.Port())))
	}
	if a, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
		span.SetAttributes(attribute.String("server.address", a.Addr().String()), attribute.Int("server.port", int(a.Port())))
	}
	return l.tracer.traced(c, span), nil
}

// traced returns c with a span that Close ends.
func (t *Tracer) traced(c net.Conn, span trace.Span) net.Conn {
	tcp, ok := c.(stack.TCPConn)
	if !ok { // not a Host's
		span.End()
		return c
	}
	return &conn{TCPConn: tcp, host: t.host, span: span}
}
