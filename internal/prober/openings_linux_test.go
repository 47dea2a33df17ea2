package prober

import (
	"bytes"
	"os"
	"testing"
	"time"
)

const snmp = `Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs
Tcp: 1 200 120000 -1 11 12 13 14 15 99 98
Udp: InDatagrams
`

func TestConnectionCounters(t *testing.T) {
	if got := connectionCounters([]byte(snmp)); string(got) != "11 12 13 14 15" {
		t.Errorf("%q", got)
	}
	for _, text := range []string{"", "Tcp: \n", "\nTcp: a\nTcp: 1 2 3\n", "\nTcp: a b c d e f g h\n"} {
		if got := connectionCounters([]byte(text)); got != nil {
			t.Errorf("%q: %q", text, got)
		}
	}
	now, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		t.Skip(err)
	}
	if got := connectionCounters(now); bytes.Count(got, []byte(" ")) != 4 {
		t.Errorf("of this kernel: %q of %s", got, now)
	}
}

// All connections are looked at when a counter has changed, for a while after, from time to
// time, and always where there are no counters.
func TestOpenings(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "snmp")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(text string) {
		if _, err := f.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	write(snmp)
	o := openings{file: f, buf: make([]byte, 4096)}
	var now time.Time
	for _, c := range []struct {
		after time.Duration
		text  string
		want  bool
	}{
		{0, snmp, true},
		{openLong, snmp, true},
		{time.Second, snmp, false},
		{time.Second, string(bytes.Replace([]byte(snmp), []byte(" 99 "), []byte(" 97 "), 1)), false}, // segments
		{time.Second, string(bytes.Replace([]byte(snmp), []byte(" 11 "), []byte(" 21 "), 1)), true},  // a connection
		{openLong + 1, string(bytes.Replace([]byte(snmp), []byte(" 11 "), []byte(" 21 "), 1)), false},
		{lookLeast, string(bytes.Replace([]byte(snmp), []byte(" 11 "), []byte(" 21 "), 1)), true},
		{1, "Tcp?", true},
	} {
		now = now.Add(c.after)
		if c.text == "Tcp?" {
			if err := f.Truncate(0); err != nil {
				t.Fatal(err)
			}
		}
		write(c.text)
		if got := o.changed(now); got != c.want {
			t.Errorf("at %v: %t, want %t", now.Sub(time.Time{}), got, c.want)
		}
	}
	o.file = nil
	for range 3 {
		if now = now.Add(openLong + time.Second); !o.changed(now) {
			t.Error("without counters nothing is looked at")
		}
	}
}

// Looks take a hundredth of a processor, or more where what is new would be found after more than two
// seconds, but no more than a tenth.
func TestPause(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: 100 * time.Millisecond, 20 * time.Millisecond: 2 * time.Second, 50 * time.Millisecond: 2 * time.Second, time.Second: 10 * time.Second,
	} {
		if got := pause(took); got != want {
			t.Errorf("%v behind a look of %v, want %v", got, took, want)
		}
	}
}
