package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weft/encap"
	"weft/fabric"
	"weft/lab"
)

func newLabCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "A Clos fabric in network namespaces, kept between commands",
		Long: `Lab builds a whole fabric on this machine: a network namespace weft-LAB-NODE per
switch and host, links with a rate and a finite queue between them, forwarding
by the kernel. With BGP, FRR's daemons run in the switches' namespaces. It needs root.`,
	}
	var name string
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error {
		if name == "" {
			return usagef("--name is empty: name the lab, or leave the flag out")
		}
		return nil
	}
	cmd.PersistentFlags().StringVar(&name, "name", lab.DefaultName, "the lab; several can be up at a time")
	cmd.AddCommand(newLabUpCmd(&name), newLabDownCmd(&name), newLabExecCmd(&name), newLabStatusCmd(&name),
		newLabFailCmd(&name), newLabHealCmd(&name), newLabExportCmd(&name), newLabCaptureCmd(&name), newLabChaosCmd(&name), newLabAgentsCmd(&name), newLabUICmd(&name))
	return cmd
}

func newLabUpCmd(name *string) *cobra.Command {
	var cfg lab.Config
	var what labFabric
	var carrier string
	var meter lab.Meter
	var ecn fabric.QueueLength
	var red, redAction string
	var metered bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Build the lab, or find it built and repair it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, guesses, err := what.read(&cfg)
			if err != nil {
				return err
			}
			for _, f := range []string{"rate", "queue", "burst", "mtu"} { // 0 would mean the default
				if v := cmd.Flags().Lookup(f).Value.String(); v == "0" {
					return usagef("--%s=0: must be above 0", f)
				}
			}
			switch c, err := encap.ParseCarrier(carrier); {
			case err != nil:
				return usagef("--encap: %w", err)
			case c == encap.CarrierMPLS:
				return usagef("--encap mpls: labs have no MPLS; use ipip or srv6")
			default:
				cfg.SRv6 = c == encap.CarrierSRv6
			}
			if err := ecn.Check(); err != nil {
				return usagef("--ecn: %w", err)
			}
			meter.ECNBytes = ecn.At(cfg.RateMbit * 1e6)
			if meter.RED, err = parseRED(red, redAction); err != nil {
				return err
			}
			if metered || meter.ECNBytes != 0 || meter.RED != (fabric.RED{}) {
				cfg.Meter = &meter
			}
			cfg.Name = *name
			progress := newProgress(cmd.Context(), "building lab "+*name)
			cfg.Progress = progress.set
			start := time.Now()
			lab, err := lab.Up(cmd.Context(), cfg)
			progress.end()
			if err != nil {
				return err
			}
			defer lab.Close()
			out := cmd.OutOrStdout()
			if lab.Reused {
				for _, what := range lab.Repaired {
					fmt.Fprintln(out, "repaired:", what)
				}
				if len(lab.Repaired) > 0 {
					fmt.Fprintf(out, "lab %s was up and damaged: %d repairs, and it is as it was built: %s\n", lab.Config.Name, len(lab.Repaired), t)
					return nil
				}
				fmt.Fprintf(out, "lab %s is up already, and there is nothing to repair: %s\n", lab.Config.Name, t)
				return nil
			}
			rate := fmt.Sprintf(" of %g Mbit/s", lab.Config.RateMbit)
			if lab.Config.HasRates() {
				rate = " of the topology's rates"
			}
			hosts, switches, links := lab.Config.Size()
			fmt.Fprintf(out, "lab %s is up: %s, %d hosts, %d switches, %d links%s, in %.1f s\n", lab.Config.Name, t,
				hosts, switches, links, rate, time.Since(start).Seconds())
			for _, guess := range guesses {
				fmt.Fprintln(out, "guessed:", guess)
			}
			for _, note := range lab.Notes {
				fmt.Fprintln(out, "note:", note)
			}
			return nil
		},
	}
	longWork(cmd)
	what.flags(cmd)
	flags := cmd.Flags()
	flags.Float64Var(&cfg.RateMbit, "rate", 20, "rate of the links whose rate the topology does not say, in each direction, Mbit/s")
	flags.IntVar(&cfg.QueueBytes, "queue", 75000, "queue of a port of --rate, bytes; of others in proportion")
	flags.IntVar(&cfg.BurstBytes, "burst", 3200, "token bucket of every port, bytes")
	flags.StringVar(&carrier, "encap", encap.CarrierIPIP.String(), "what packets may have their path in: ipip, or srv6 as well")
	flags.BoolVar(&metered, "meter", false, "meter the switches' queues: weft lab status prints them, probes and CONGA's marks carry them")
	flags.TextVar(&ecn, "ecn", fabric.QueueLength{}, "queue from which on packets are marked, `bytes` of a port of --rate, of others in proportion, or a time, such as 12ms (0: none is); meters, too")
	flags.StringVar(&red, "red", "", "Random Early Detection at all switches, `MIN,MAX[,MAX_P]` of the average queue, bytes or times, such as 4ms,12ms,0.1; meters, too")
	flags.StringVar(&redAction, "red-action", "drop", "what RED does: drop, or mark, which drops only packets that are not capable of ECN")
	flags.StringVar(&cfg.Balance, "balance", "routes", "`rule` by which switches spread what plain hosts send, as in weft switch: ecmp, two-level, classifier, rb, rrb, drb, letflow, drill, conga or luopan")
	flags.BoolVar(&cfg.BFD, "bfd", false, "with BGP, switches watch their links by BFD, too")
	flags.IntVar(&cfg.MTU, "mtu", 1500, "MTU of every link, bytes")
	flags.IntVar(&cfg.GSOMaxBytes, "gso-max", 0, "largest super-segment of the hosts' kernels, bytes (0: the kernel's)")
	return cmd
}

func newLabDownCmd(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the lab, complete or not, and end the programs that run in it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := lab.Down(*name)
			for _, p := range r.Ended {
				fmt.Fprintln(cmd.OutOrStdout(), p)
			}
			if err != nil {
				return err
			}
			if r.Namespaces == 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "lab %s was not up\n", *name)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "lab %s is down, %d namespaces removed\n", *name, r.Namespaces)
			return nil
		},
	}
}

func newLabExecCmd(name *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "exec NODE -- COMMAND [ARGUMENT]...",
		Short:   "Run a program on a node of the lab",
		Example: "  weft lab exec h0.0.2 -- ping -c 3 10.3.1.3",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 && args[1] == "--" {
				args = slices.Delete(args, 1, 2)
			}
			if len(args) < 2 {
				return usagef("lab exec: give a node and a command, as in weft lab exec h0.0.2 -- ping 10.3.1.3")
			}
			lab, err := lab.Open(*name)
			if err != nil {
				return err
			}
			defer lab.Close()
			node, err := lab.Lookup(args[0])
			if err != nil {
				return err
			}
			return lab.Exec(node.ID, args[1:], os.Environ())
		},
	}
	// What follows the node is the program's, flags included.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func newLabStatusCmd(name *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Links, decapsulation and counters of every node",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lab, err := lab.Open(*name)
			if err != nil {
				return err
			}
			defer lab.Close()
			status := lab.Status()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), status)
			}
			if err := printStatus(cmd.OutOrStdout(), status); err != nil {
				return err
			}
			if err := printLabels(cmd.OutOrStdout(), status); err != nil {
				return err
			}
			if err := printAgents(cmd.OutOrStdout(), lab); err != nil {
				return err
			}
			return printFailures(cmd.OutOrStdout(), lab)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
