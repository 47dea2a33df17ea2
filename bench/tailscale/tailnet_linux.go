package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
)

// up does what "tailscale up --login-server=URL --accept-dns=false" does, and returns when the
// host is in the tailnet, by the address that the other one expects.
func (d *daemon) up(ctx context.Context, control string, self netip.Addr) error {
	if err := d.poll(ctx, "answers", func() (bool, error) {
		_, err := d.client.StatusWithoutPeers(ctx)
		return err == nil, nil
	}); err != nil {
		return err
	}
	prefs := ipn.NewPrefs()
	prefs.ControlURL = control
	prefs.WantRunning = true
	prefs.CorpDNS = false          // the machine's own resolver goes on
	prefs.AutoUpdate.Check = false // there is nobody to ask
	if err := d.client.Start(ctx, ipn.Options{UpdatePrefs: prefs}); err != nil {
		return fmt.Errorf("settings of tailscaled: %w", err)
	}
	if err := d.client.StartLoginInteractive(ctx); err != nil {
		return fmt.Errorf("log in at %s: %w", control, err)
	}
	return d.poll(ctx, "is in the tailnet", func() (bool, error) {
		s, err := d.client.StatusWithoutPeers(ctx)
		// Without a relay tailscaled calls itself Running only once it has talked to a peer.
		if err != nil || len(s.TailscaleIPs) == 0 || s.BackendState != ipn.Starting.String() && s.BackendState != ipn.Running.String() {
			return false, err
		}
		if !slices.Contains(s.TailscaleIPs, self) {
			return false, fmt.Errorf("the addresses are %v, want %v: another host was first", s.TailscaleIPs, self)
		}
		return true, nil
	})
}

// reach returns when packets go through the tunnel to the peer and back, directly.
func (d *daemon) reach(ctx context.Context, peer netip.Addr) error {
	last := errors.New("it is not in the tailnet")
	err := d.poll(ctx, "reaches its peer", func() (bool, error) {
		// First both ends find the direct path. Without a relay a handshake is lost that comes
		// before that, and the next one takes seconds.
		if last = d.ping(ctx, peer, tailcfg.PingDisco); last == nil {
			last = d.ping(ctx, peer, tailcfg.PingTSMP)
		}
		if last == nil {
			last = d.direct(ctx, peer)
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: the peer %v: %w", err, peer, last)
	}
	return nil
}

func (d *daemon) ping(ctx context.Context, peer netip.Addr, by tailcfg.PingType) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := d.client.Ping(ctx, peer, by)
	if err == nil && r.Err != "" {
		err = errors.New(r.Err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", by, err)
	}
	return nil
}

// direct fails unless packets to the peer go to an address of its own.
func (d *daemon) direct(ctx context.Context, peer netip.Addr) error {
	s, err := d.client.Status(ctx)
	if err != nil {
		return err
	}
	for _, p := range s.Peer {
		if slices.Contains(p.TailscaleIPs, peer) {
			return directly(p)
		}
	}
	return fmt.Errorf("%v is no peer in the tailnet", peer)
}

func directly(p *ipnstate.PeerStatus) error {
	switch {
	case p.PeerRelay != "":
		return fmt.Errorf("packets go by the relay %s, not directly", p.PeerRelay)
	case p.CurAddr == "":
		return fmt.Errorf("packets do not go directly (relay %q)", p.Relay)
	}
	return nil
}

// poll asks until it is true that the daemon does something.
func (d *daemon) poll(ctx context.Context, does string, ask func() (bool, error)) error {
	for {
		if ok, err := ask(); ok || err != nil {
			return err
		}
		select {
		case err := <-d.ended:
			d.ended <- err
			return errors.New("tailscaled has ended")
		case <-ctx.Done():
			return fmt.Errorf("not yet true after %v: tailscaled %s", startLimit, does)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
