package failover

import (
	"testing"
	"time"
)

func TestStreams_pacedDeliverWhatTheyAskFor(t *testing.T) {
	s, whole := inMemory(t)
	to, _ := permute(whole, 1)
	const asked = 50_000 // bytes per second and stream, of the million that links carry
	streams, err := startStreams(t.Context(), s.Hosts, to, asked)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.stop()
	start := time.Now()
	for time.Since(start) < time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(start).Seconds() + 1 // what was written before
	for i, n := range streams.count() {
		if n == 0 || float64(n) > asked*took {
			t.Errorf("host %d has %d bytes after %.1f s", i, n, took)
		}
	}
	if n, why := streams.lostConnections(); n != 0 {
		t.Errorf("%d connections were lost: %v", n, why)
	}
}

func TestStreams_noticeALostConnection(t *testing.T) {
	s, whole := inMemory(t)
	to, _ := permute(whole, 1)
	streams, err := startStreams(t.Context(), s.Hosts, to, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.stop()
	for end := time.Now().Add(time.Minute); streams.count()[0] == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	s.Stacks[0].Close() // resets what it sends and what it receives
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n, why := streams.lostConnections(); n == 2 && why != nil {
			return
		}
	}
	n, why := streams.lostConnections()
	t.Errorf("%d connections are lost, want 2: %v", n, why)
}

func TestStreams_thatAreStoppedAreNotLost(t *testing.T) {
	s, whole := inMemory(t)
	to, _ := permute(whole, 1)
	streams, err := startStreams(t.Context(), s.Hosts, to, 0)
	if err != nil {
		t.Fatal(err)
	}
	streams.stop()
	if n, why := streams.lostConnections(); n != 0 || why != nil {
		t.Errorf("%d lost: %v", n, why)
	}
}
