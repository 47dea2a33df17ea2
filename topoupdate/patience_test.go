package topoupdate

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	const agreed = 150 * time.Millisecond
	var p patience
	now := time.Duration(0)
	after := func(gone, back time.Duration) time.Duration { // how long it may be silent then
		now += gone
		p.silent(now)
		now += back
		p.proved(agreed, now)
		return p.of(agreed, now)
	}
	p.proved(agreed, now)
	if got := p.of(agreed, now); got != agreed {
		t.Errorf("at first %v", got)
	}
	if got := after(time.Second, 2*time.Second); got != agreed {
		t.Errorf("after a failure of 2 s %v", got)
	}
	for i, want := range []time.Duration{2, 4, 8, 16, 16} {
		if got := after(time.Second, 100*time.Millisecond); got != want*agreed {
			t.Errorf("after mistake %d %v, want %v", i+1, got, want*agreed)
		}
	}
	if p.mistakes != 5 {
		t.Errorf("%d mistakes, want 5", p.mistakes)
	}
	now += patienceLasts
	if got := p.of(agreed, now); got != agreed {
		t.Errorf("after a minute without mistakes %v", got)
	}
	if got := after(0, 100*time.Millisecond); got != 2*agreed {
		t.Errorf("after the first mistake since %v", got)
	}
}
