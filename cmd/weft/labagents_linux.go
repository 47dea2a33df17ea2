package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"weft/fabric"
	"weft/internal/config"
	"weft/internal/switchd"
	"weft/lab"
	"weft/topology"
	"weft/topoupdate"
)

func newLabAgentsCmd(name *string) *cobra.Command {
	var hello time.Duration
	var keysFile string
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Run an agent on every switch, until interrupted or until the lab is down",
		Long: `Agents runs on every switch of the lab what weft switch is on one, all in this
process: they watch their links, tell each other and the hosts which are down, and
keep the switches' routes accordingly. With --balance classifier they also move flows
between ports, and with conga and luopan edge switches take live paths. It prints what they find out. It
ends with its lab. When it is
interrupted the switches get the lab's routes back, unless something has failed:
then they keep those that lead around it.`,
		Example: "  weft lab agents &\n  weft lab fail a0.2-c1.1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			keys, err := readKeys(keysFile)
			if err != nil {
				return usagef("--keys-file: %w", err)
			}
			return withLab(*name, func(lab *lab.Lab) error {
				return runLabAgents(cmd.Context(), cmd.OutOrStdout(), lab, switchd.Config{Hello: hello, Keys: keys, Routes: true})
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&hello, "hello", topoupdate.DefaultHello, "how often neighbours say hello")
	f.StringVar(&keysFile, "keys-file", "", "`file` with keys and accept_unsigned, as in the configuration of weft switch (default: nothing is signed)")
	return cmd
}

// readKeys reads a file that has of a switch's configuration the keys only.
func readKeys(file string) (topoupdate.Keys, error) {
	if file == "" {
		return topoupdate.Keys{}, nil
	}
	text, err := config.ReadInput(file, config.MaxBytes)
	if err != nil {
		return topoupdate.Keys{}, err
	}
	var f struct {
		Keys           []config.UpdateKey `yaml:"keys"`
		AcceptUnsigned bool               `yaml:"accept_unsigned"`
	}
	lines, err := config.Decode(text, file, &f)
	if err != nil {
		return topoupdate.Keys{}, err
	}
	if len(f.Keys) == 0 {
		return topoupdate.Keys{}, lines.Errorf("keys", "there are none; give one, as weft switch --print-config shows")
	}
	if err := config.ReadUpdateKeys(f.Keys, lines, "keys", "weft lab agents"); err != nil {
		return topoupdate.Keys{}, err
	}
	return config.UpdateKeys(f.Keys, f.AcceptUnsigned, time.Now()), nil
}

// runLabAgents runs agents until ctx or one of them ends. c is the configuration that they
// have in common.
func runLabAgents(ctx context.Context, w io.Writer, lab *lab.Lab, c switchd.Config) (err error) {
	if lab.Config.Graph != nil {
		return usagef("lab agents: the switches of this lab run BGP, which does what agents do")
	}
	if len(lab.Config.Only) > 0 {
		return usagef("lab agents: this lab is only a part of its topology; run weft switch on the switches that it has")
	}
	c.Topology, c.Routing, c.Groups = lab.Config.Topology, lab.Config.Routing, fabric.GroupsOf(lab.Config.Balance)
	c.Leaf = fabric.BalanceRoom(lab.Config.Balance) > 0
	var agents []*switchd.Agent
	defer func() {
		for _, a := range agents {
			err = errors.Join(err, a.Close())
		}
		if agents != nil && !lab.Gone() {
			err = errors.Join(err, restoreLabRoutes(w, lab.Config.Name))
		}
	}()
	news := newAgentNews(w, c.Topology, lab.Gone)
	ended := make(chan error, c.Topology.NumNodes())
	for n := range switchesOf(c.Topology) {
		c.Self, c.Changed = n.ID, news.from(n.ID)
		var a *switchd.Agent
		err := lab.Do(n.ID, func() (err error) {
			a, err = switchd.Start(c)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		agents = append(agents, a)
		go func() {
			<-a.Done()
			if err := a.Err(); err != nil {
				ended <- fmt.Errorf("the agent of %s has ended: %w", n.Name, err)
			}
		}()
	}
	if fabric.Classifies(lab.Config.Balance) {
		flows, failed := lab.Classify()
		if failed != nil {
			return failed
		}
		defer func() {
			s, err2 := flows.Stats()
			news.say("classifiers: %d flows got a port, %d moved, %d evicted", s.Flows, s.Moved, s.Evicted)
			err = errors.Join(err, err2, flows.Close())
		}()
	}
	news.say("agents run on %d switches of lab %s, with hellos every %v; ^C ends them", len(agents), lab.Config.Name, c.Hello)
	look := time.NewTicker(labLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if !lab.Gone() {
				return err
			}
		case <-look.C:
		}
		if lab.Gone() {
			news.say("lab %s is down: its agents end", lab.Config.Name)
			return nil
		}
	}
}

// labLook is how often agents look whether their lab is still there.
const labLook = 250 * time.Millisecond

// restoreLabRoutes gives the switches the lab's routes back. The routes of agents outlive
// the agents, and some of the lab's may be missing.
func restoreLabRoutes(w io.Writer, name string) error {
	lab, err := lab.Open(name)
	if err != nil {
		return nil // it was taken down meanwhile
	}
	defer lab.Close()
	if failed, err := lab.Failures(); err != nil || len(failed) > 0 {
		fmt.Fprintf(w, "the switches keep the routes that lead around failures (%s): heal them, and run weft lab agents once more to have all back\n", failureList(failed))
		return err
	}
	for n := range switchesOf(lab.Config.Topology) {
		plan, err := lab.Plan(n.ID)
		if err != nil {
			return err
		}
		err = lab.Do(n.ID, func() error {
			_, err := fabric.Apply(plan)
			return err
		})
		if err != nil {
			return err
		}
	}
	return lab.RefreshBalance()
}

// switchesOf are the nodes of a topology that are no hosts.
func switchesOf(t *topology.Topology) iter.Seq[topology.Node] {
	return func(yield func(topology.Node) bool) {
		for n := range t.Nodes() {
			if n.Layer != topology.LayerHost && !yield(n) {
				return
			}
		}
	}
}
