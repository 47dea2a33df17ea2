package stack

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// fallbackDelay is how long the addresses of one family are tried before those of the other
// are tried besides: what package net takes (RFC 6555 §5).
const fallbackDelay = 300 * time.Millisecond

// byFamily divides addresses into those of the first one's family and the others.
func byFamily(all []netip.AddrPort) (first, second []netip.AddrPort) {
	for _, a := range all {
		if a.Addr().Is4() == all[0].Addr().Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	return first, second
}

// dialing is a call of DialContext.
type dialing struct {
	host           *Host
	network, proto string
	policy         flowPolicy
}

// series tries addresses in turn.
func (d dialing) series(ctx context.Context, remotes []netip.AddrPort) (net.Conn, error) {
	var failed dialErrors
	for i, remote := range remotes {
		conn, err := d.host.dialOne(ctx, d.proto, remote, d.policy, len(remotes)-i)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, &net.OpError{Op: "dial", Net: d.network, Addr: netAddr(d.proto, remote), Err: err})
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed.reduce(d.network)
}

// race tries the addresses of one family, and after a while, or when they have failed, those
// of the other besides. The first connection is the result. If there is none, the error is
// the first family's, as in package net.
func (d dialing) race(ctx context.Context, first, second []netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn  net.Conn
		err   error
		first bool
	}
	results := make(chan result, 2)
	try := func(remotes []netip.AddrPort, isFirst bool) {
		conn, err := d.series(ctx, remotes)
		results <- result{conn, err, isFirst}
	}
	go try(first, true)
	timer := time.NewTimer(fallbackDelay)
	defer timer.Stop()
	started, running := false, 1
	start := func() {
		if !started {
			started = true
			running++
			go try(second, false)
		}
	}
	var err error
	for running > 0 {
		select {
		case <-timer.C:
			start()
		case r := <-results:
			running--
			if r.err == nil {
				for range running { // what comes too late is closed
					go func() {
						if late := <-results; late.conn != nil {
							late.conn.Close()
						}
					}()
				}
				return r.conn, nil
			}
			if r.first {
				err = r.err
			}
			if ctx.Err() == nil {
				start()
			}
		}
	}
	return nil, err
}
