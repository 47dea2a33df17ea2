package switchd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/eventlog"
	"weft/topoupdate"
)

// signing is the key that signs so long after the start: the latest whose time has come.
func signing(k topoupdate.Keys, elapsed time.Duration) (id uint8) {
	var latest time.Duration
	for i, key := range k.List {
		if key.From <= elapsed && (i == 0 || key.From >= latest) {
			id, latest = key.ID, key.From
		}
	}
	return id
}

// A roll-over happens at its time of day, whatever the machine's clock said when the
// agent started, and however often it is set.
func TestKeysAt_followTheClock(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	f, err := parse([]byte("keys:\n- {id: 1, key: "+secret+"}\n- {id: 2, key: "+secret+", from: 2027-01-31T12:00:00Z}\n"), "switch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	roll := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, wrong := range []time.Duration{-24 * time.Hour, -time.Hour, 0, time.Hour, 24 * time.Hour} {
		start := roll.Add(-30*time.Minute + wrong) // half an hour before, by a wrong clock
		d := &daemon{file: f, start: start, origin: start}
		for _, c := range []struct {
			elapsed time.Duration
			wall    time.Time
			want    uint8
		}{
			{time.Minute, roll.Add(-29 * time.Minute), 1}, // the clock has been set right
			{29 * time.Minute, roll.Add(-time.Minute), 1},
			{31 * time.Minute, roll.Add(time.Minute), 2},
			{32 * time.Minute, roll.Add(2*time.Minute + 200*time.Millisecond), 2},
		} {
			keys, _ := d.keysAt(c.wall, c.elapsed)
			if got := signing(keys, c.elapsed); got != c.want {
				t.Errorf("started with a clock that is wrong by %v: at %v key %d signs, want %d", wrong, c.wall, got, c.want)
			}
		}
	}
	d := &daemon{file: f, start: roll, origin: roll}
	if _, set := d.keysAt(roll.Add(time.Hour), time.Hour); set {
		t.Error("the clock was not set")
	}
	if _, set := d.keysAt(roll.Add(2*time.Hour), time.Hour); !set {
		t.Error("the clock was set")
	}
}

// An agent's start has a higher number than all before, also if the machine's clock was
// an hour ahead then.
func TestBoot_goesOnAfterTheClockWasSetBack(t *testing.T) {
	dir, err := makeDir(-1, -1)
	if err != nil {
		t.Skip(err)
	}
	file := filepath.Join(dir, clockFile)
	t.Cleanup(func() {
		os.Remove(file)
		os.Remove(dir)
	})
	d := &daemon{log: eventlog.Lines(io.Discard)}
	first := d.boot()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if err := decoder.Decode(&state); err != nil {
		t.Fatal(err)
	}
	booted, err := state["booted"].(json.Number).Int64()
	if err != nil {
		t.Fatal(err)
	}
	state["booted"] = booted + int64(time.Hour)
	if b, err = json.Marshal(state); err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if second := d.boot(); second < first+uint64(time.Hour) {
		t.Errorf("numbers %d and, an hour ahead, %d", first, second)
	}
}
