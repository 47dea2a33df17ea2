package ui

import (
	"encoding/json"
	"testing"

	"weft/internal/live"
)

// A client that reads nothing is dropped, and the others go on.
func TestRecorder_slowClients(t *testing.T) {
	s, _, frame := serve(t, newFake(1))
	slow, err := s.recorder.join()
	if err != nil {
		t.Fatal(err)
	}
	quick, err := s.recorder.join()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxWaiting {
		frame()
		for len(quick.messages) > 0 {
			<-quick.messages
		}
	}
	n := 0
	for range slow.messages { // ends, as it is closed
		n++
	}
	h := s.recorder.history()
	if n != maxWaiting || h.Slow != 1 || h.Clients != 1 {
		t.Errorf("the slow one got %d messages, %d dropped, %d left; want %d, 1 and 1", n, h.Slow, h.Clients, maxWaiting)
	}
	s.recorder.leave(quick)
	s.recorder.leave(slow)
	for range maxClients {
		if _, err := s.recorder.join(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.recorder.join(); err == nil {
		t.Errorf("more than %d clients", maxClients)
	}
}

// A large fabric is drawn in bundles; the members of one are told, the worst first.
func TestRecorder_bundles(t *testing.T) {
	src := newFake(live.MaxDrawn + 1)
	s, url, frame := serve(t, src)
	frame()
	frame()
	if p := s.recorder.picture(); !p.Bundles || p.CanFail || len(p.Links) != live.MaxDrawn+1 { // every host is a pod
		t.Errorf("bundles %t, can fail %t, %d links", p.Bundles, p.CanFail, len(p.Links))
	}
	_, text, _ := get(t, "GET", url+"/api/members?link=5", "", nil)
	var members []member
	if err := json.Unmarshal([]byte(text), &members); err != nil || len(members) != 1 || members[0].Name != "h5-up" {
		t.Errorf("members %s, %v", text, err)
	}
	all := []member{{Name: "idle"}, {Name: "busy", LinkFrame: live.LinkFrame{Up: live.Flow{Use: 1}}}, {Name: "drops", LinkFrame: live.LinkFrame{Down: live.Flow{Drops: 1}}}, {Name: "down", LinkFrame: live.LinkFrame{State: live.Broken}}}
	sortMembers(all)
	if all[0].Name != "down" || all[1].Name != "drops" || all[2].Name != "busy" {
		t.Errorf("order %v", all)
	}
}
