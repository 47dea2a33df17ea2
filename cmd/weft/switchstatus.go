package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/fabric"
	"weft/internal/service"
	"weft/internal/switchd"
	"weft/internal/table"
)

func newSwitchStatusCmd() *cobra.Command {
	var socket string
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "How the switch's agent does; --all: what it knows, and from whom",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), func(ctx context.Context) ([]byte, error) { return askSwitch(ctx, socket) })
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the agent's `socket` (default that of this network namespace)")
	f.add(cmd)
	return cmd
}

// askSwitch asks the agent behind a socket; "" stands for the one of this network namespace.
func askSwitch(ctx context.Context, socket string) ([]byte, error) {
	if socket == "" {
		var err error
		if socket, err = switchd.StatusSocket(); err != nil {
			return nil, err
		}
	}
	text, err := service.AskStatus(ctx, socket, switchAgent)
	if err == nil && !isSwitchStatus(text) {
		err = fmt.Errorf("status: at %s answers no switch; try weft status --socket %s", socket, socket)
	}
	return text, err
}

// isSwitchStatus tells the status of a switch's agent from a host's.
func isSwitchStatus(text []byte) bool {
	var s struct {
		Switch string `json:"switch"`
	}
	return json.Unmarshal(text, &s) == nil && s.Switch != ""
}

// printSwitchStatus prints the status of a switch's agent as tables.
func printSwitchStatus(w io.Writer, text []byte) error {
	var s switchd.Status
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	fmt.Fprintf(w, "%s of %s, process %d, for %v\n", s.Switch, s.Topology, s.Process, seconds(s.Uptime))
	fmt.Fprintf(w, "down: %s; %d changes\n", orNone(s.Down), s.Changes)
	if s.Routes != nil {
		fmt.Fprintf(w, "routes: %d changed in %d updates, the last in %.2f ms; %d errors %s\n", s.Routes.Changed, s.Routes.Updates, s.Routes.LastMS, s.Routes.Errors, s.Routes.LastError)
	}
	if !s.Signed {
		fmt.Fprintln(w, "updates: UNSIGNED: who gets at a cable between switches can say what is down; weft keygen makes a key")
	}
	if r := s.Repairs; r != nil {
		fmt.Fprintf(w, "repairs: %d\n", r.Count)
		for _, what := range r.Last {
			fmt.Fprintf(w, "  %s\n", what)
		}
		if r.Trouble != "" {
			fmt.Fprintf(w, "trouble: %s\n", r.Trouble)
		}
	}
	printSwitchCounters(w, s)
	fmt.Fprintf(w, "messages: %d received, rejected: %s; %d hellos and %d updates sent\n\n", s.Received, orNone(counts(s.Rejected)), s.HellosSent, s.UpdatesSent)
	t := table.NewWriter(w, -1)
	fmt.Fprintln(t, "port\tneighbour\tstate\tsince\twhy\tsent\treceived\tdropped")
	for _, n := range s.Neighbours {
		state := n.State
		if n.Held > 0 {
			state += fmt.Sprintf(" for %v", seconds(n.Held))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%s\t%d\t%d\t%d\n", n.Port, n.Name, state, seconds(n.Since), n.Why, n.Sent, n.Got, n.Drops)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if s.MeterError != "" {
		fmt.Fprintf(w, "\nthe meters cannot be read: %s\n", s.MeterError)
	}
	for _, e := range s.Extensions {
		if e.Error != "" {
			fmt.Fprintf(w, "\nextension %s is left out: %s\n", e.Extension, e.Error)
		} else {
			fmt.Fprintf(w, "\nextension %s: runs\n", e.Extension)
		}
	}
	if err := printMeters(w, s.Meters); err != nil {
		return err
	}
	printFeedback(w, s.Feedback)
	fmt.Fprintln(t, "\nswitch\tsequence\tage\tfrom\tdown")
	for _, e := range s.Database {
		fmt.Fprintf(t, "%s\t%d\t%v\t%s\t%s\n", e.Switch, e.Sequence, seconds(e.Age), e.From, orNone(e.Down))
	}
	return t.Flush()
}

// seconds is a time as people read it.
func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// counts are counters by name, sorted.
func counts(m map[string]uint64) (words []string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		words = append(words, fmt.Sprintf("%s %d", name, m[name]))
	}
	return words
}

// printSwitchCounters prints what became of encapsulated packets, drops by cause.
func printSwitchCounters(w io.Writer, s switchd.Status) {
	switch b := s.Balance; {
	case b != nil && s.BalanceError != "":
		fmt.Fprintf(w, "balance %s: the counters cannot be read: %s\n", b.Rule, s.BalanceError)
	case s.Classifier != nil:
		printClassifier(w, s.Classifier, s.BalanceError)
	case s.BalanceError != "":
		fmt.Fprintf(w, "balance: packets go by plain routes: %s\n", s.BalanceError)
	case b != nil:
		fmt.Fprintf(w, "balance %s: %d packets to %d destinations with several ways, %d left to plain routes", b.Rule, b.Chosen, b.Destinations, b.Plain)
		if b.Grouped > 0 {
			fmt.Fprintf(w, "; %d destinations have asymmetric ways: a flow keeps to a group of them", b.Grouped)
		}
		if b.LeftOut > 0 {
			fmt.Fprintf(w, "; %d destinations had no room", b.LeftOut)
		}
		if b.Flowlets > 0 {
			fmt.Fprintf(w, "; %d flowlets, %d evicted", b.Flowlets, b.Evicted)
		}
		fmt.Fprintln(w)
		printLeaf(w, b)
	}
	if c := s.Decap; c != nil {
		fmt.Fprintf(w, "IP-in-IP: %d decapsulated, dropped: %s\n", c.Decapsulated, refusals(c))
	}
	if c := s.Edge; c != nil {
		fmt.Fprintf(w, "labels' ends: %d decapsulated, dropped: %s\n", c.Decapsulated,
			byCause(map[string]uint64{"forged": c.Forged, "nested": c.Nested, "ECN": c.ECN, "malformed": c.Malformed}))
	}
	if c := s.Labels; c != nil {
		fmt.Fprintf(w, "labels: %d forwarded, %d decapsulated, dropped: %s\n", c.Popped, c.Decapsulated,
			byCause(map[string]uint64{"unknown": c.Unknown, "ended early": c.Ended, "expired": c.Expired, "malformed": c.Malformed}))
	}
	if s.CounterError != "" {
		fmt.Fprintf(w, "the counters cannot be read: %s\n", s.CounterError)
	}
}

// printClassifier prints what a flow classifier has done.
func printClassifier(w io.Writer, c *fabric.ClassifierStats, unread string) {
	if unread != "" {
		fmt.Fprintf(w, "balance %s: the counters cannot be read: %s\n", c.Rule, unread)
		return
	}
	fmt.Fprintf(w, "balance %s: %d flows known, %d have got a port, %d moved, %d evicted", c.Rule, c.Known, c.Flows, c.Moved, c.Evicted)
	if c.Rescued > 0 {
		fmt.Fprintf(w, "; %d had a dead port", c.Rescued)
	}
	if c.Full > 0 {
		fmt.Fprintf(w, "; %d packets had no room for their flow", c.Full)
	}
	if c.Late > 0 {
		fmt.Fprintf(w, "; %d packets went by host ID, as the agent was late", c.Late)
	}
	fmt.Fprintln(w)
}

// refusals are what a bouncing switch has dropped, by cause.
func refusals(c *fabric.Counters) string {
	return byCause(map[string]uint64{"spoofed": c.Spoofed, "nested": c.Nested, "ECN": c.ECN, "malformed": c.Malformed})
}

// byCause is a sum and, unless that is 0, what it is made of.
func byCause(m map[string]uint64) string {
	sum := uint64(0)
	maps.DeleteFunc(m, func(_ string, n uint64) bool { sum += n; return n == 0 })
	if sum == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", sum, strings.Join(counts(m), ", "))
}
