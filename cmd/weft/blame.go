package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weft/internal/daemon"
)

// blameVersion rises when a key of blameJSON goes or comes to mean something else. New keys do
// not raise it.
const blameVersion = 1

// blameJSON is what weft blame prints with --json.
type blameJSON struct {
	Version int                  `json:"version"` // blameVersion
	Blamed  []daemon.BlameStatus `json:"blamed"`  // the worst first
}

func newBlameCmd() *cobra.Command {
	var socket string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "blame",
		Short: "Which links, switches and hosts hurt the packets of this host",
		Long: `Blame asks the running weft host which places of the fabric hurt its packets: links that are
suspected by what probes say now, and links, switches and hosts that have lost packets in the
last 10 to 20 seconds, the worst first. Weft sends packets by all paths, so the paths that lose
some tell where: what they have in common and good paths do not. Where no path tells places apart
all of them are named. Where the host has paths of IPv4 and IPv6, both are looked at, and what is
true of one only is said. Only paths that carry traffic are looked at. In mode offload what is counted is
probes, which go where traffic goes; mode gateway also counts the packets that TCP sends again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := askStatus(cmd.Context(), socket)
			if err != nil {
				return err
			}
			if isSwitchStatus(text) {
				return fmt.Errorf("blame: weft switch answers; only a weft host sends packets by all paths: ask on a host")
			}
			var s struct {
				Failures *daemon.FailureStatus `json:"failures"`
			}
			if err := json.Unmarshal(text, &s); err != nil {
				return fmt.Errorf("blame: %w", err)
			}
			if s.Failures == nil || s.Failures.Probes == nil {
				return fmt.Errorf("blame: this weft host sends no probes, so it knows of no losses: set failures.probes to true")
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), blameJSON{blameVersion, append([]daemon.BlameStatus{}, s.Failures.Blamed...)})
			}
			return printBlame(cmd.OutOrStdout(), s.Failures.Blamed)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// families are what daemon.BlameStatus.Family is in words.
var families = map[string]string{"ipv4": "IPv4 ", "ipv6": "IPv6 "}

// printBlame prints what hurts, the worst first.
func printBlame(w io.Writer, list []daemon.BlameStatus) error {
	if len(list) == 0 {
		fmt.Fprintln(w, "nothing hurts: no path with traffic has lost more probes and packets than the others in the last 10 s")
		return nil
	}
	for i, b := range list {
		var what []string
		if b.Loss > 0 {
			what = append(what, fmt.Sprintf("loses %s %%: %d %spackets by %d paths in the last 10 to 20 s", twoDigits(100*b.Loss), b.Lost, families[b.Family], b.Paths))
		}
		if b.Why != "" {
			use := "out of use: "
			if len(b.Says) > 0 {
				use = "out of use to " + strings.Join(b.Says, ", ") + " by that word alone: "
			}
			if b.Held {
				use = "suspected, and in use as too few others are left: "
			}
			if f := families[b.Family]; f != "" && b.Loss == 0 {
				use = "for " + f + "packets " + use
			}
			what = append(what, use+b.Why)
		}
		fmt.Fprintf(w, "%d. %s  %s", i+1, strings.Join(b.Places, " or "), strings.Join(what, "; "))
		if b.Confidence < 0.99 {
			fmt.Fprintf(w, "; other places explain it, too: %.0f %% sure", 100*b.Confidence)
		}
		fmt.Fprintln(w)
		var hurt []string
		for _, h := range b.Hurt {
			hurt = append(hurt, fmt.Sprintf("%s %d", h.To, h.Lost))
		}
		if len(hurt) > 0 {
			fmt.Fprintf(w, "   packets lost to: %s\n", strings.Join(hurt, ", "))
		}
	}
	return nil
}

// twoDigits writes a percentage with two significant digits, and never as a power.
func twoDigits(percent float64) string {
	digits := 0
	if percent < 10 && percent > 0 {
		digits = int(math.Ceil(1 - math.Log10(percent)))
	}
	return strconv.FormatFloat(percent, 'f', min(digits, 4), 64)
}
