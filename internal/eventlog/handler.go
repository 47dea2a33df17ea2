package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Formats are the values of Options.Format.
var Formats = []string{"text", "json"}

// Options say how a daemon writes its log: the section "log" of a configuration.
type Options struct {
	Format string `yaml:"format"` // one of Formats
	Level  string `yaml:"level"`  // of log/slog: debug, info, warn or error
}

// Check says which key is wrong, and how.
func (o Options) Check() (key string, err error) {
	if o.Format != Formats[0] && o.Format != Formats[1] {
		return "format", fmt.Errorf("%q is unknown; there are %s", o.Format, strings.Join(Formats, " and "))
	}
	if _, err := o.level(); err != nil {
		return "level", fmt.Errorf("%q is unknown; there are debug, info, warn and error", o.Level)
	}
	return "", nil
}

func (o Options) level() (l slog.Level, err error) {
	err = l.UnmarshalText([]byte(o.Level))
	return l, err
}

// To returns a Log that writes lines. Options are those that Check has found right.
func (o Options) To(w io.Writer) *Log {
	level, _ := o.level()
	if o.Format == Formats[1] {
		return New(slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})), nil)
	}
	return New(slog.New(&text{w: w, level: level, mu: new(sync.Mutex)}), nil)
}

// Lines returns a Log that writes text.
func Lines(w io.Writer) *Log { return Options{Format: Formats[0], Level: "info"}.To(w) }

// text writes an event as people read it: the message, and those attributes that the message
// does not have in it already. The message says all that is in a group. It has no times: systemd's journal adds them.
type text struct {
	w     io.Writer
	level slog.Level
	mu    *sync.Mutex
	with  []slog.Attr
}

// Enabled implements slog.Handler.
func (h *text) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// Handle implements slog.Handler.
func (h *text) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString(r.Message)
	add := func(a slog.Attr) bool {
		value := fmt.Sprint(a.Value.Any())
		if a.Key != Key && a.Value.Kind() != slog.KindGroup && !strings.Contains(r.Message, value) {
			fmt.Fprintf(&b, ", %s %s", a.Key, value)
		}
		return true
	}
	for _, a := range h.with {
		add(a)
	}
	r.Attrs(add)
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b.Bytes())
	return err
}

// WithAttrs implements slog.Handler.
func (h *text) WithAttrs(more []slog.Attr) slog.Handler {
	n := *h
	n.with = append(h.with[:len(h.with):len(h.with)], more...)
	return &n
}

// WithGroup implements slog.Handler. Text has no groups.
func (h *text) WithGroup(string) slog.Handler { return h }
