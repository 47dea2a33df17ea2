// Package otelweft makes OpenTelemetry spans of a Host's TCP connections. It is a module of its
// own, so that weft does not depend on OpenTelemetry.
//
//	t := otelweft.New(host, nil)
//	client := http.Client{Transport: &http.Transport{DialContext: t.DialContext}}
//	http.Serve(t.Listener(l), handler)
//
// A connection has one span, "weft.connection", from the dial or Accept to Close: an open
// connection is exported when it is closed. A span of a dial is a child of that in the dial's
// context, one of Accept has no parent. A dial that fails ends its span with the error. Other networks than TCP
// have no spans.
//
// Attributes that the span has from the beginning are those of OpenTelemetry's conventions
// (network.transport, server.address, server.port; client.address, client.port of Accept). At
// Close it gets what stack.Host.ConnStats tells:
//
//	weft.sent_bytes, weft.received_bytes    payload
//	weft.retransmits, weft.timeouts         segments sent again; retransmission timeouts
//	weft.out_of_order, weft.held            incoming segments that arrived out of order; that waited for others
//	weft.rtt                                smoothed round trip in seconds
//	weft.paths, weft.path_shares            bouncing switches, at most 16, and the part of the bytes by each; with
//	                                        stack.Config.ConnPaths
//
// A span costs some microseconds a connection and nothing for each packet.
package otelweft
