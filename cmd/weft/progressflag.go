package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/config"
)

// How progress is told.
const (
	progressAuto  = "auto" // a bar on a terminal, nothing elsewhere
	progressBar   = "bar"
	progressLines = "lines" // a line when a part begins, and now and then
	progressJSON  = "json"  // a progressEvent a line
	progressNone  = "none"
)

var progressModes = []string{progressAuto, progressLines, progressJSON, progressNone}

// progressMode is the value of --progress.
type progressMode string

func (m *progressMode) String() string { return string(*m) }
func (m *progressMode) Type() string   { return "mode" }

// Set is pflag.Value's.
func (m *progressMode) Set(s string) error {
	if !slices.Contains(progressModes, s) {
		return fmt.Errorf("must be %s; %s", strings.Join(progressModes, ", "), config.DidYouMean(s, progressModes))
	}
	*m = progressMode(s)
	return nil
}

// longWork gives a command that takes long the flag --progress, and its context what newProgress
// looks for.
func longWork(cmd *cobra.Command) *cobra.Command {
	mode := progressMode(progressAuto)
	cmd.Flags().Var(&mode, "progress", "how to tell on standard error how far it is: auto (a bar on a terminal, nothing elsewhere), lines, json (an event a line: weft schema progress) or none")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SetContext(withProgress(cmd.Context(), newProgressOutput(mode, cmd.ErrOrStderr(), cmd.CommandPath())))
		return nil
	}
	return cmd
}

type progressKey struct{}

func withProgress(ctx context.Context, out *progressOutput) context.Context {
	return context.WithValue(ctx, progressKey{}, out)
}

// progressOutput is where a command's progress is told, and how.
type progressOutput struct {
	mode    string
	w       io.Writer
	command string
	now     func() time.Time
}

func newProgressOutput(mode progressMode, w io.Writer, command string) *progressOutput {
	o := &progressOutput{mode: string(mode), w: w, command: command, now: time.Now}
	if mode == progressAuto {
		o.mode = progressNone
		if _, _, terminal := terminalSize(w); terminal {
			o.mode = progressBar
		}
	}
	return o
}

// first is from when on something is told, and every how often then.
func (o *progressOutput) first() time.Duration {
	if o.mode == progressBar {
		return time.Second // what is over sooner needs no bar
	}
	return 0
}

func (o *progressOutput) every() time.Duration {
	switch o.mode {
	case progressBar:
		return 200 * time.Millisecond
	case progressLines:
		return 10 * time.Second
	}
	return time.Second
}

// tellsBegun reports whether each part is told of, however short it is.
func (o *progressOutput) tellsBegun() bool { return o.mode != progressBar }

// progressEvent is a line of --progress json.
type progressEvent struct {
	Command  string   `json:"command"`
	Doing    string   `json:"doing"`
	Part     int      `json:"part"` // from 1; those before are done
	Parts    int      `json:"parts"`
	Percent  float64  `json:"percent"` // of all
	ElapsedS float64  `json:"elapsed_s"`
	LeftS    *float64 `json:"left_s"` // null: too little is done to tell
	Ended    bool     `json:"ended"`  // the last event; the exit status says how
}

func (o *progressOutput) tell(p *progress, s progressState) {
	switch o.mode {
	case progressBar:
		_, columns, _ := terminalSize(o.w)
		line := s.bar(columns - 1)
		fmt.Fprintf(o.w, "\r%-*s", p.shown, line)
		p.shown = len(line)
	case progressLines:
		fmt.Fprintln(o.w, s.text())
	case progressJSON:
		o.event(s, false)
	}
}

func (o *progressOutput) event(s progressState, ended bool) {
	e := progressEvent{Command: o.command, Doing: s.doing, Part: s.part, Parts: s.parts, Ended: ended,
		Percent: math.Round(1000*s.done) / 10, ElapsedS: math.Round(10*s.elapsed.Seconds()) / 10}
	if s.left >= 0 {
		left := s.left.Seconds()
		e.LeftS = &left
	}
	text, _ := json.Marshal(e) // it has nothing that cannot be
	fmt.Fprintf(o.w, "%s\n", text)
}

// end takes the bar away, or tells the last time.
func (o *progressOutput) end(p *progress) {
	o.clear(p)
	if o.mode == progressJSON {
		o.event(p.state(o.now()), true)
	}
}

// clear takes the bar away, for others to write there.
func (o *progressOutput) clear(p *progress) {
	if p.shown > 0 {
		fmt.Fprintf(o.w, "\r%*s\r", p.shown, "")
		p.shown = 0
	}
}

// text is the state in words.
func (s progressState) text() string {
	text := fmt.Sprintf("%3.0f %%", math.Floor(100*s.done))
	if s.parts > 1 {
		text += fmt.Sprintf("  part %d of %d", s.part, s.parts)
	}
	if s.left >= 0 {
		text += fmt.Sprintf("  %v left", s.left)
	}
	return text + "  " + s.doing
}

// What a bar takes of a terminal that has room for it.
const (
	barLetters   = 24
	roomForABar  = 70
	fewestLetter = 20
)

// bar is the state as a line of so many columns at most.
func (s progressState) bar(columns int) string {
	line := s.text()
	if columns >= roomForABar {
		full := int(barLetters * s.done)
		line = "[" + strings.Repeat("#", full) + strings.Repeat("-", barLetters-full) + "] " + line
	}
	if most := max(columns, fewestLetter); len(line) > most {
		line = line[:most]
	}
	return line
}
