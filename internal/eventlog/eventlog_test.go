package eventlog

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weft/internal/event"
)

func TestLog_textAndJSON(t *testing.T) {
	var b bytes.Buffer
	l := Options{Format: "text", Level: "info"}.To(&b)
	l.Warn(event.UplinkDown, "uplink p1 is down", "uplink", "p1")
	l.Warn(event.PathDown, "path avoided", "link", "a0.1-c1.1", "why", "probes not answered")
	l.Info(event.Repaired, "repaired: rule 5740", slog.Group("", "hidden", "x"))
	l.Say(slog.LevelDebug, event.Started, "not told")
	if want := "uplink p1 is down\npath avoided, link a0.1-c1.1, why probes not answered\nrepaired: rule 5740\n"; b.String() != want {
		t.Errorf("text:\n%s\nwant\n%s", b.String(), want)
	}

	b.Reset()
	l = Options{Format: "json", Level: "WARN"}.To(&b)
	l.Warn(event.UplinkDown, "uplink p1 is down", slog.Group("", "uplink", "p1"))
	l.Info(event.UplinkUp, "not told")
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"level": "WARN", "msg": "uplink p1 is down", "uplink": "p1", Key: "uplink_down"} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if _, err := time.Parse(time.RFC3339, got["time"].(string)); err != nil {
		t.Error(err)
	}
}

// What is suppressed is counted, and told with the next event, or when it has ended.
func TestLog_suppressed(t *testing.T) {
	var b bytes.Buffer
	now := time.Duration(0)
	l := New(slog.New(&text{w: &b, mu: new(sync.Mutex)}), func() time.Duration { return now })
	for range event.Burst + 7 {
		l.Warn(event.Trouble, "trouble: why")
	}
	if n := strings.Count(b.String(), "\n"); n != event.Burst {
		t.Errorf("%d lines, want %d", n, event.Burst)
	}
	b.Reset()
	l.Flush()
	if b.Len() > 0 {
		t.Errorf("told early: %s", b.String())
	}
	now += event.Every
	l.Warn(event.Trouble, "trouble: why")
	if b.String() != "trouble: why, suppressed 7\n" {
		t.Errorf("the next says %s", b.String())
	}
	l.Warn(event.Trouble, "trouble: why")
	now += event.TellAfter
	b.Reset()
	l.Flush()
	if want := "1 events of the name trouble were not told\n"; b.String() != want {
		t.Errorf("flushed: %s, want %s", b.String(), want)
	}

	var none *Log
	none.Warnf(event.Trouble, "nobody")
	none.Flush()
	if New(nil, nil) != nil {
		t.Error("a log to nobody is one")
	}
}

// In the machine's time nobody needs to call Flush: what was suppressed is told in the end, once,
// and at once by Close. After Close a timer tells nothing.
func TestLog_tellsBySelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		mu := new(sync.Mutex) // of b
		l := New(slog.New(&text{w: &b, mu: mu}), nil)
		says := func() string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return b.String()
		}
		storm := func() {
			mu.Lock()
			b.Reset()
			mu.Unlock()
			for range event.Burst + 7 {
				l.Warn(event.Trouble, "trouble: why")
			}
		}
		told := func(want string) {
			t.Helper()
			if got := strings.ReplaceAll(says(), "trouble: why\n", ""); got != want {
				t.Errorf("told: %s, want %s", got, want)
			}
		}
		storm()
		time.Sleep(event.TellAfter - 1)
		told("")
		time.Sleep(event.TellAfter) // for one that comes later: the timer goes on
		told("7 events of the name trouble were not told\n")
		time.Sleep(time.Minute)
		told("7 events of the name trouble were not told\n")

		storm()
		time.Sleep(event.TellAfter / 2)
		for range event.Burst {
			l.Warn(event.Trouble, "trouble: why")
		}
		time.Sleep(time.Minute)
		if n := strings.Count(says(), "were not told"); n != 1 {
			t.Errorf("told %d times", n)
		}

		time.Sleep(time.Minute)
		storm()
		l.Close()
		told("7 events of the name trouble were not told\n")
		storm()
		time.Sleep(time.Minute)
		told("")
		l.Close()
		told("")
	})
}

func TestOptions_check(t *testing.T) {
	for _, c := range []struct {
		o   Options
		key string
	}{{Options{"text", "info"}, ""}, {Options{"json", "error"}, ""}, {Options{"xml", "info"}, "format"}, {Options{"text", "loud"}, "level"}, {Options{}, "format"}} {
		if key, err := c.o.Check(); key != c.key || (err == nil) != (key == "") {
			t.Errorf("%+v: %q, %v; want %q", c.o, key, err, c.key)
		}
	}
}

// docs/events.md lists every name, and no other.
func TestNames_areDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			got = append(got, m[1])
		}
	}
	var want []string
	for _, n := range event.Names() {
		want = append(want, string(n))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/events.md has\n%v\nwant\n%v", got, want)
	}
}

// again is a handler that has the Log flush, and close, while it runs.
type again struct {
	slog.Handler
	log *Log
	n   int
}

func (a *again) Handle(context.Context, slog.Record) error {
	if a.n++; a.n > event.Burst {
		a.log.Flush()
		a.log.Close()
	}
	return nil
}

// A handler may call the Log that calls it.
func TestLog_holdsNoLockWhileItWrites(t *testing.T) {
	a := &again{Handler: slog.DiscardHandler}
	on := slog.New(enabled{a})
	a.log = New(on, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range event.Burst + 7 {
			a.log.Warn(event.Trouble, "trouble")
		}
		a.log.Close()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the handler waits for the Log that waits for it")
	}
	if a.n != event.Burst+1 {
		t.Errorf("%d records, want one more than %d", a.n, event.Burst)
	}
}

// enabled has all levels handled.
type enabled struct{ slog.Handler }

func (enabled) Enabled(context.Context, slog.Level) bool { return true }
