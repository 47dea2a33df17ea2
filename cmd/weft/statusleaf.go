package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"weft/fabric"
)

// printLeaf prints what a leaf switch that leads by paths has done, and what it knows.
func printLeaf(w io.Writer, b *fabric.BalanceStats) {
	l := b.Leaf
	if l == nil {
		return
	}
	if strings.HasPrefix(b.Rule, "conga") {
		fmt.Fprintf(w, "  %d packets carry marks, %d marks of other racks, %d that prove nothing", l.Marked, l.Heard, l.Unproven)
	} else {
		fmt.Fprintf(w, "  %d flowcells by samples; %d samples sent, %d answers, %d late or not asked for; %d of others answered, %d not", l.Guided, l.Sampled, l.Learned, l.Unasked, l.Answered, l.Unanswered)
	}
	if l.TooLong+l.Refused > 0 {
		fmt.Fprintf(w, "; plain: %d too long, %d refused", l.TooLong, l.Refused)
	}
	if l.Spoofed > 0 {
		fmt.Fprintf(w, "; dropped: %d of a foreign source", l.Spoofed)
	}
	if l.Late > 0 {
		fmt.Fprintf(w, "; by routes, while nobody looked after the paths: %d", l.Late)
	}
	fmt.Fprintln(w)
	for _, r := range l.Racks {
		var words []string
		for _, t := range r.Tags {
			words = append(words, fmt.Sprintf("%d: %d/%d", t.Tag, t.Local, t.Remote))
		}
		if r.RTT > 0 {
			words = append(words, fmt.Sprintf("samples in %v", r.RTT.Round(time.Microsecond)))
		}
		if r.Best != nil {
			words = append(words, fmt.Sprintf("path %d is the best", *r.Best))
		}
		if r.Silent > 0 {
			words = append(words, fmt.Sprintf("%d rounds without an answer", r.Silent))
		}
		what := ""
		if len(r.Tags) > 0 {
			what = "load by tag, own/reported, in eighths: "
		}
		fmt.Fprintf(w, "  to %s: %s%s\n", r.Rack, what, strings.Join(words, ", "))
	}
}
