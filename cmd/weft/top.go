package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"weft/internal/live"
	"weft/internal/live/source"
	"weft/internal/live/top"
	"weft/internal/live/ui"
	"weft/lab"
)

// topFlags are those of weft top.
type topFlags struct {
	ofLab, json  bool
	name, socket string
	interval     time.Duration
}

func newTopCmd() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "A live picture of the fabric, in the terminal",
		Long: `Top shows what weft ui shows, as text: links by utilisation, queue and loss, nodes,
connections with the paths of the one that is selected, and what happened. It keeps ten
minutes, any moment of which can be looked at.

It shows what the weft host of this network namespace sees, or with --lab all of a lab.
Keys: ` + top.Keys + `.
w writes the frame that is shown into a file, as JSON. Without colours if NO_COLOR is set.`,
		Example: "  weft top\n  weft top --lab\n  weft top --lab --json | jq '.frame.total'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch flags := cmd.Flags(); {
			case f.ofLab && flags.Changed("socket"):
				return usagef("--socket names a weft host's socket, --lab a lab: give one")
			case !f.ofLab && flags.Changed("name"):
				return usagef("--name names a lab: give --lab, too")
			case f.interval < ui.MinInterval:
				return usagef("--interval %v: must be %v or more", f.interval, ui.MinInterval)
			}
			src, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			defer src.Close()
			return f.run(cmd, src)
		},
	}
	cmd.Flags().BoolVar(&f.ofLab, "lab", false, "show a lab")
	cmd.Flags().StringVar(&f.name, "name", lab.DefaultName, "the lab")
	cmd.Flags().StringVar(&f.socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	cmd.Flags().DurationVar(&f.interval, "interval", ui.DefaultInterval, "from one look to the next")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one frame as an object, of what happens in --interval, and end")
	return cmd
}

func (f *topFlags) open(ctx context.Context) (live.Source, error) {
	if f.ofLab {
		return openLabSource(f.name)
	}
	if _, err := parseHostStatus(ctx, f.socket); err != nil {
		return nil, fmt.Errorf("top: %w", err)
	}
	return source.LocalHost(func(ctx context.Context) ([]byte, error) { return askStatus(ctx, f.socket) }), nil
}

// pictureJSON is a frame with what it is of.
type pictureJSON struct {
	Fabric *live.Fabric `json:"fabric"`
	Frame  *live.Frame  `json:"frame"`
}

func (f *topFlags) run(cmd *cobra.Command, src live.Source) error {
	ctx := cmd.Context()
	look := looker{src: src}
	if f.json {
		if _, _, err := look.next(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.interval):
		}
		fabric, frame, err := look.next(ctx)
		if err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), pictureJSON{fabric, frame})
	}
	if _, _, terminal := terminalSize(os.Stdout); !terminal {
		return usagef("top: standard output is no terminal; weft top --json prints a frame for programs")
	}
	m := &topModel{ctx: ctx, look: &look, interval: f.interval, screen: top.Screen{Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}}
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithAltScreen(), tea.WithoutSignalHandler()).Run()
	switch {
	case m.failed != nil:
		return m.failed
	case ctx.Err() != nil || errors.Is(err, tea.ErrProgramKilled):
		return ctx.Err()
	}
	return err
}

// looker asks a source, and makes frames of what it says.
type looker struct {
	src   live.Source
	meter live.Meter
}

func (l *looker) next(ctx context.Context) (*live.Fabric, *live.Frame, error) {
	fabric, err := l.src.Fabric(ctx)
	if err != nil {
		return nil, nil, err
	}
	sample, err := l.src.Sample(ctx)
	if err != nil {
		return nil, nil, err
	}
	return fabric, l.meter.Next(fabric, sample), nil
}

// topModel joins a top.Screen with a terminal. One command at a time asks the source.
type topModel struct {
	ctx      context.Context
	look     *looker
	interval time.Duration
	screen   top.Screen
	asked    bool // the source has answered once
	failed   error
}

type (
	topAnswer struct {
		fabric *live.Fabric
		frame  *live.Frame
		err    error
	}
	topAsk struct{}
)

// Init is tea.Model's.
func (m *topModel) Init() tea.Cmd { return m.ask }

func (m *topModel) ask() tea.Msg {
	fabric, frame, err := m.look.next(m.ctx)
	return topAnswer{fabric, frame, err}
}

// Update is tea.Model's.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
	case tea.KeyMsg:
		switch key := msg.String(); key {
		case "q", "ctrl+c":
			return m, tea.Quit
		case "w":
			m.screen.Note = m.write()
		default:
			m.screen.Key(key)
		}
	case topAsk:
		return m, m.ask
	case topAnswer:
		switch {
		case msg.err == nil:
			m.asked = true
			m.screen.Add(msg.fabric, msg.frame)
		case !m.asked:
			m.failed = msg.err
			return m, tea.Quit
		default: // it may come back
			m.screen.Note = msg.err.Error()
		}
		return m, tea.Tick(m.interval, func(time.Time) tea.Msg { return topAsk{} })
	}
	return m, nil
}

// View is tea.Model's.
func (m *topModel) View() string { return m.screen.View() }

// write writes the frame that is shown into a file of the working directory, and says where.
func (m *topModel) write() string {
	fabric, frame := m.screen.Shown()
	if frame == nil {
		return "there is no frame yet"
	}
	name := fmt.Sprintf("weft-top-%s-%d.json", frame.At.Format("150405"), frame.Seq)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err.Error()
	}
	if err := errors.Join(printJSON(file, pictureJSON{fabric, frame}), file.Close()); err != nil {
		return err.Error()
	}
	return "written to " + name
}
