package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"weft/stack"
)

// liveFlags are those of paths --live.
type liveFlags struct {
	live     bool
	socket   string
	to       string
	interval time.Duration
	json     bool
}

// minInterval keeps a terminal readable, and the daemon at its work.
const minInterval = 50 * time.Millisecond

// run prints what a running host knows of its paths, once or until ctx is done.
func (f liveFlags) run(ctx context.Context, w io.Writer) error {
	if f.interval != 0 && f.interval < minInterval {
		return usagef("--interval %v: must be %v or more, or 0 for once", f.interval, minInterval)
	}
	for {
		text, err := askStatus(ctx, f.socket)
		if err == nil {
			err = f.show(w, text)
		}
		if err != nil || f.interval == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.interval):
			if !f.json {
				fmt.Fprintf(w, "\n-- %s\n", time.Now().Format(time.TimeOnly))
			}
		}
	}
}

// show prints one status.
func (f liveFlags) show(w io.Writer, text []byte) error {
	s, err := parseLive(text)
	if err != nil {
		return err
	}
	racks := s.Congestion
	if f.to != "" {
		if racks, err = towards(s, f.to); err != nil {
			return err
		}
	}
	if f.json {
		return printJSON(w, liveJSON{s.Policy, s.Encapsulation, append([]stack.Congestion{}, racks...), append([]bounceCount{}, s.bounces()...)})
	}
	fmt.Fprintf(w, "policy %s, encapsulation %s\n", s.Policy, s.Encapsulation)
	if len(s.Congestion) == 0 {
		fmt.Fprintln(w, "of congestion nothing is known: the policy does not look, or nothing has been sent lately")
	}
	if err := printCongestion(w, racks); err != nil {
		return err
	}
	return printBounces(w, s.bounces())
}

// liveJSON is what paths --live --json prints.
type liveJSON struct {
	Policy        string             `json:"policy"`
	Encapsulation string             `json:"encapsulation"`
	Racks         []stack.Congestion `json:"racks"`
	Bounces       []bounceCount      `json:"bounces"`
}

// towards is what is known of the rack of a host, or of that name, or of its hosts.
func towards(s liveStatus, to string) ([]stack.Congestion, error) {
	addr, err := netip.ParseAddr(to)
	var found []stack.Congestion
	var known []string
	for _, c := range s.Congestion {
		if c.Rack == to || c.Host == to || err == nil && c.Prefix.Contains(addr.Unmap()) {
			found = append(found, c)
		}
		known = append(known, fmt.Sprintf("%s (%s)", c.Rack, c.Prefix))
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(known) == 0:
		return nil, fmt.Errorf("--to %s: of congestion nothing is known: the policy does not look (%s), or nothing has been sent lately; send something there, and ask again", to, s.Policy)
	}
	return nil, usagef("--to %s: nothing is known; name an address in one of %s, or the rack", to, strings.Join(known, ", "))
}
