package otelweft_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"weft/fabrictest"
	"weft/otelweft"
	"weft/stack"
)

// hosts are two Hosts of a fabric in memory.
func hosts(t *testing.T) (client, server *stack.Host) {
	t.Helper()
	f, err := fabrictest.New("fat-tree:k=4", fabrictest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	c := stack.Config{Policy: "drb", ConnPaths: true}
	if client, err = f.Host("h0.0.2", c); err == nil {
		server, err = f.Host("h3.1.3", c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// attributes are those of a span by name.
func attributes(s sdk.ReadOnlySpan) map[string]attribute.Value {
	m := make(map[string]attribute.Value)
	for _, a := range s.Attributes() {
		m[string(a.Key)] = a.Value
	}
	return m
}

// A connection has a span at each end, which ends with it, once, and says what it has done. That of
// the dial is a child of the context's.
func TestTracer_spansOfAConnection(t *testing.T) {
	client, server := hosts(t)
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	plain, err := server.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	l := otelweft.New(server, provider).Listener(plain)
	const n = 500_000
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, n))
			c.Close()
		}
		served <- err
	}()
	ctx, parent := provider.Tracer("test").Start(context.Background(), "request")
	c, err := otelweft.New(client, provider).DialContext(ctx, "tcp", "10.3.1.131:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	want, err := client.ConnStats(c) // behind the wrapper
	if err != nil || want.Sent != n {
		t.Fatalf("%+v, %v", want, err)
	}
	if _, ok := c.(stack.TCPConn); !ok {
		t.Error("it is no TCPConn")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	parent.End()

	spans := map[trace.SpanKind]sdk.ReadOnlySpan{}
	for _, s := range recorder.Ended() {
		if spans[s.SpanKind()] != nil {
			t.Errorf("two spans of kind %v", s.SpanKind())
		}
		spans[s.SpanKind()] = s
	}
	dialled, accepted := spans[trace.SpanKindClient], spans[trace.SpanKindServer]
	if len(spans) != 3 || dialled == nil || accepted == nil {
		t.Fatalf("spans: %v", spans)
	}
	if dialled.Parent().SpanID() != parent.SpanContext().SpanID() || accepted.Parent().IsValid() {
		t.Errorf("parents: %v and %v", dialled.Parent(), accepted.Parent())
	}
	a := attributes(dialled)
	if a["weft.sent_bytes"].AsInt64() != n || a["weft.received_bytes"].AsInt64() != 0 || a["server.address"].AsString() != "10.3.1.131" || a["server.port"].AsInt64() != 80 ||
		a["network.transport"].AsString() != "tcp" || a["weft.rtt"].AsFloat64() <= 0 || a["weft.retransmits"].AsInt64() < int64(want.Retransmits) {
		t.Errorf("the client's: %v", a)
	}
	sum := 0.0
	for _, share := range a["weft.path_shares"].AsFloat64Slice() {
		sum += share
	}
	if len(a["weft.paths"].AsStringSlice()) != 4 || len(a["weft.path_shares"].AsFloat64Slice()) != 4 || math.Abs(sum-1) > 1e-9 {
		t.Errorf("the client's paths: %v, %v", a["weft.paths"].AsStringSlice(), a["weft.path_shares"].AsFloat64Slice())
	}
	if b := attributes(accepted); b["weft.received_bytes"].AsInt64() != n || b["client.address"].AsString() != client.Address().String() || b["server.port"].AsInt64() != 80 {
		t.Errorf("the server's: %v", b)
	}
}

// A dial that fails has a span with the error. What is not TCP has none.
func TestTracer_failures(t *testing.T) {
	client, _ := hosts(t)
	recorder := tracetest.NewSpanRecorder()
	tracer := otelweft.New(client, sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)))
	if _, err := tracer.DialContext(context.Background(), "tcp", "10.3.1.131:81"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal(err)
	}
	spans := recorder.Ended()
	if len(spans) != 1 || spans[0].Status().Code != codes.Error || len(spans[0].Events()) != 1 {
		t.Fatalf("spans: %v", spans)
	}
	c, err := tracer.DialContext(context.Background(), "udp", "10.3.1.131:81")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if len(recorder.Started()) != 1 {
		t.Errorf("UDP has a span")
	}
	otelweft.New(client, nil) // the global provider is there
}
