package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weft/bench/membership"
	"weft/encap"
)

// benchMeshOptions are the flags of weft bench mesh.
type benchMeshOptions struct {
	run     membership.Options
	verbose bool
	resultOutput
}

func newBenchMeshCmd() *cobra.Command {
	var o benchMeshOptions
	cmd := &cobra.Command{
		Use:   "mesh",
		Short: "How fast hosts of a mesh act on each other's news while etcd's leader is killed",
		Long: `Mesh starts three members of etcd and hosts that find each other there, without a
privilege: the hosts are stacks in this process, joined by UDP on the loopback. Of the hosts one in
five comes and goes: it leaves, dies without a word, moves to another endpoint with its key, or takes
its registration back and goes on sending. All replace their keys. Of the others each has connections
with two more, over which it sends all the time.

First etcd is whole (--quiet). Then its leader is killed --kills times, and between the kills networks
are cut: hosts from etcd for longer than their registrations live, hosts from each other, one member of
etcd from the others. All the time datagrams are forged: by wrong keys, none and former ones, and
recorded ones are sent again.

The table says how long it took until the last of the hosts that etcd reaches acted on what happened to
one, and until each did. The command fails if a connection was lost, if a byte of what was forged, sent
again or sent after a registration's end was accepted, or if hosts refused datagrams of their peers.

It needs the program etcd (apt install etcd-server).`,
		Example: "  weft bench mesh --hosts 50 --kills 50\n" +
			"  weft bench mesh --hosts 10 --kills 0 --quiet 1m --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.bench(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.run.Hosts, "hosts", 50, "how many hosts there are")
	f.IntVar(&o.run.Kills, "kills", 50, "how often etcd's leader is killed")
	f.DurationVar(&o.run.Quiet, "quiet", 30*time.Second, "for how long hosts come and go before the first kill")
	f.DurationVar(&o.run.Renew, "renew", 20*time.Second, "after how long a host replaces its key")
	f.DurationVar(&o.run.TTL, "ttl", 10*time.Second, "after how long a registration ends whose host etcd does not hear, in whole seconds")
	f.DurationVar(&o.run.Linger, "linger", 30*time.Second, "for how long a host stays a peer that is heard and not registered")
	f.TextVar(&o.run.Cipher, "encryption", encap.UDPAESGCM, "gmac, aes-gcm or chacha20poly1305")
	f.Uint64Var(&o.run.Seed, "seed", 1, "of what happens when; how long it takes is the machine's")
	f.BoolVar(&o.verbose, "verbose", false, "tell what happens")
	o.resultFlags(cmd, "an object")
	return cmd
}

func (o *benchMeshOptions) bench(ctx context.Context, w, notes io.Writer) error {
	if err := o.run.Check(); err != nil {
		return usage(err)
	}
	if o.verbose {
		o.run.Notes = notes
	}
	if err := o.openResults(); err != nil {
		return err
	}
	defer o.discardResults()
	run := newRunInfo(o.run.Seed, 1)
	fmt.Fprintln(notes, run)
	p := newProgress(ctx, "killing")
	o.run.Progress = p.set
	r, err := membership.Run(ctx, o.run)
	p.end()
	if err != nil {
		return err
	}
	err = o.putResults(w, run, r, r.Print)
	if why := r.Failed(); why != "" {
		err = errors.Join(err, errors.New(why))
	}
	return err
}
