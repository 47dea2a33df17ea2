package output

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reader is a parser, asked for the work of its sample.
type reader struct {
	sample, about string // what the program printed, in testdata; in which words errors begin
	p99           float64
	read          func(text string) (p99 float64, err error)
}

func noP99(f func(string) error) func(string) (float64, error) {
	return func(s string) (float64, error) { return 0, f(s) }
}

var readers = []reader{
	{"redis.csv", "redis-benchmark: ", 4.415, func(s string) (float64, error) { return Redis(s, "SET", "GET") }},
	{"pgbench.txt", "pgbench: ", 0, noP99(func(s string) error { return Pgbench(s, 60) })},
	{"pgbench.log", "the log of pgbench: ", 3.938, func(s string) (float64, error) { return PgbenchLog(s, 60) }},
	{"wrk.txt", "wrk: ", 4.61, func(s string) (float64, error) { return Wrk(s, 9877) }},
	{"iperf3.json", "iperf3: ", 0, noP99(func(s string) error { return IPerf3(s, 2<<20) })},
	{"rsync.txt", "rsync: ", 0, noP99(func(s string) error { return Rsync(s, 2, 303000) })},
}

func sample(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReaders_samples(t *testing.T) {
	for _, r := range readers {
		if p99, err := r.read(sample(t, r.sample)); err != nil || math.Abs(p99-r.p99) > 1e-9 {
			t.Errorf("%s: %g, %v; want %g", r.sample, p99, err, r.p99)
		}
	}
}

// Text that is cut short has no figures, unless what is missing is blank or decoration behind
// all that counts.
func TestReaders_truncated(t *testing.T) {
	for _, r := range readers {
		text := sample(t, r.sample)
		enough := -1 // the shortest part that is read
		for n := range len(text) + 1 {
			_, err := r.read(text[:n])
			switch {
			case err == nil && enough < 0:
				enough = n
			case err != nil && enough >= 0:
				t.Errorf("%s: %d bytes are read, %d are not: %v", r.sample, enough, n, err)
			case err != nil && !strings.HasPrefix(err.Error(), r.about):
				t.Errorf("%s: an error that does not name the program: %v", r.sample, err)
			}
		}
		if enough < len(text)*8/10 {
			t.Errorf("%s: %d of %d bytes are read", r.sample, enough, len(text))
		}
	}
}

// What a program prints when its server does not answer, or answers otherwise, is an error that
// shows what it printed.
func TestReaders_failures(t *testing.T) {
	for _, c := range []struct {
		sample, want string
		read         func(string) (float64, error)
	}{
		{"redis-refused.txt", "Connection refused", readers[0].read},
		{"pgbench-refused.txt", "Connection refused", readers[1].read},
		{"wrk-refused.txt", "Connection refused", readers[3].read},
		{"wrk404.txt", "Non-2xx or 3xx responses: 32752", readers[3].read},
		{"iperf3-refused.json", "unable to connect to server: Connection refused", readers[4].read},
		{"rsync-refused.txt", "Connection refused", readers[5].read},
		{"redis.csv", "no line of the test LPUSH", func(s string) (float64, error) { return Redis(s, "LPUSH") }},
		{"pgbench.txt", `"60/60" transactions were processed in place of 61/61`, noP99(func(s string) error { return Pgbench(s, 61) })},
		{"pgbench.log", "60 transactions in place of 61", func(s string) (float64, error) { return PgbenchLog(s, 61) }},
		{"wrk.txt", "9877 requests in place of 9878", func(s string) (float64, error) { return Wrk(s, 9878) }},
		{"iperf3.json", "in place of 1073741824", noP99(func(s string) error { return IPerf3(s, 1<<30) })},
		{"rsync.txt", "is followed by 2 in place of 3", noP99(func(s string) error { return Rsync(s, 3, 303000) })},
		{"rsync.txt", "is followed by 303000 in place of 303001", noP99(func(s string) error { return Rsync(s, 2, 303001) })},
	} {
		if _, err := c.read(sample(t, c.sample)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.sample, err, c.want)
		}
	}
	failed := strings.Replace(sample(t, "pgbench.txt"), "failed transactions: 0 (0.000%)", "failed transactions: 7 (11.667%)", 1)
	if err := Pgbench(failed, 60); err == nil || !strings.Contains(err.Error(), "7 (11.667%)") {
		t.Errorf("failed transactions: %v", err)
	}
	timeouts := strings.Replace(sample(t, "wrk.txt"), "Requests/sec", "  Socket errors: connect 0, read 2, write 0, timeout 1\nRequests/sec", 1)
	if _, err := Wrk(timeouts, 1); err == nil || !strings.Contains(err.Error(), "read 2") {
		t.Errorf("socket errors: %v", err)
	}
}

func TestWrkTime(t *testing.T) {
	for s, want := range map[string]float64{"4.61ms": 4.61, "235.00us": 0.235, "1.50s": 1500, "2.00m": 120e3, "1.00h": 3600e3,
		"": -1, "ms": -1, "-1ms": -1, "NaNs": -1, "Infs": -1, "0.00us": -1, "12": -1} {
		if ms, ok := wrkTime(s); ok != (want > 0) || ok && math.Abs(ms-want) > 1e-9 {
			t.Errorf("%q: %g, %v; want %g", s, ms, ok, want)
		}
	}
}

// No text makes a reader panic, or return what is no time. Errors are short and on one line.
func FuzzReaders(f *testing.F) {
	names, err := filepath.Glob("testdata/*.*")
	if err != nil || len(names) < len(readers) {
		f.Fatal(names, err)
	}
	for _, name := range names {
		for i := range readers {
			f.Add(uint8(i), sample(f, filepath.Base(name)))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, text string) {
		r := readers[int(i)%len(readers)]
		p99, err := r.read(text)
		if err == nil && (math.IsNaN(p99) || math.IsInf(p99, 0) || (r.p99 > 0) != (p99 > 0)) {
			t.Errorf("%s: %g", r.sample, p99)
		}
		if err != nil && (p99 != 0 || !strings.HasPrefix(err.Error(), r.about)) {
			t.Errorf("%s: %g, %v", r.sample, p99, err)
		}
	})
}
