package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "tailscale:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	program string // tailscaled
	dir     string
	serve   string
	control string
	self    netip.Addr
	peer    netip.Addr
	profile string
	seconds int
}

func parse() (o options, err error) {
	flag.StringVar(&o.program, "tailscaled", "", "tailscaled, compiled")
	flag.StringVar(&o.dir, "dir", "", "directory for its files, the only one that it may write to")
	flag.StringVar(&o.serve, "serve", "", "address and port to run the control server at; \"\" for the other host's")
	flag.StringVar(&o.control, "control", "", "address and port of the control server")
	flag.TextVar(&o.self, "address", netip.Addr{}, "this host's address in the tailnet")
	flag.TextVar(&o.peer, "peer", netip.Addr{}, "the other host's")
	flag.StringVar(&o.profile, "profile", "", "file for a profile of tailscaled's processor time from the first question for counts on")
	flag.IntVar(&o.seconds, "seconds", 1, "how long the profile takes")
	flag.Parse()
	if o.program == "" || o.dir == "" || o.control == "" || !o.self.IsValid() || !o.peer.IsValid() {
		return o, errors.New("--tailscaled, --dir, --control, --address and --peer are needed: weft bench throughput starts this")
	}
	return o, nil
}

// startLimit is more than it takes two daemons to find each other, on a busy machine, too.
const startLimit = 50 * time.Second

func run() (err error) {
	o, err := parse()
	if err != nil {
		return err
	}
	tables, err := listTables()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeTables(tables)) }()
	if o.serve != "" {
		if err := serveControl(o.serve); err != nil {
			return err
		}
	}
	d, err := startDaemon(o.program, o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := d.up(ctx, "http://"+o.control, o.self); err != nil {
		return d.explain(err)
	}
	// The first host of a tailnet is alone.
	if o.serve == "" {
		if err := d.reach(ctx, o.peer); err != nil {
			return d.explain(err)
		}
	}
	return answer(d, o)
}
