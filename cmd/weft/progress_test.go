package main

import (
	"testing"
	"time"

	"weft/bench/papers"
)

func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		elapsed        time.Duration
		perMille, kept int
		want           time.Duration
	}{
		{time.Minute, 0, 0, 0},
		{time.Minute, 4, 0, 0},
		{time.Minute, 500, 0, time.Minute},
		{time.Minute, 500, 400, 5 * time.Minute},
		{time.Minute, 1000, 900, 0},
		{time.Hour + 29*time.Second, 500, 0, time.Hour},
		{time.Second, 501, 500, 0},
	} {
		if got := timeLeft(c.elapsed, papers.Progress{PerMille: c.perMille, Kept: c.kept}); got != c.want {
			t.Errorf("%v, %d of a thousand, %d kept: %v, want %v", c.elapsed, c.perMille, c.kept, got, c.want)
		}
	}
}
