package lookout

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"weft/internal/dataplane/dataplanetest"
	"weft/internal/event"
	"weft/internal/eventlog"
)

// A Lookout tells in the end what its Journal's log has suppressed, though nothing new follows.
func TestLookout_flushesItsJournal(t *testing.T) {
	var c dataplanetest.HandClock
	var b bytes.Buffer
	config := mute(&c)
	config.Journal = NewPathLog(eventlog.New(slog.New(slog.NewTextHandler(&b, nil)), c.Now)).Journal("ipip")
	start(t, config)
	for range event.Burst + 7 {
		config.Journal.log.Warn(event.Device, "trouble")
	}
	c.Run(3 * event.TellAfter)
	if !strings.Contains(b.String(), "event="+string(event.Suppressed)) {
		t.Errorf("nothing is told of what was suppressed:\n%s", b.String())
	}
}

// A timer that expires while Close runs tells the Journal nothing after it.
func TestLookout_closedTellsItsJournalNothing(t *testing.T) {
	var c dataplanetest.HandClock
	var b bytes.Buffer
	config := mute(&c)
	config.Journal = NewJournal(slog.New(slog.NewTextHandler(&b, nil)), fabric, "ipip", 1400)
	l, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.use() // which is news
	l.mu.Unlock()
	l.Close()
	l.telling.Lock() // as tick does, if Close comes before
	if err := l.tell(); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 0 || l.noted != (verdict{}) {
		t.Errorf("after Close, the Journal is told of %v, and says\n%s", l.noted, b.String())
	}
}
