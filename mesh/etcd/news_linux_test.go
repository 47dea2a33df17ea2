package etcd

import (
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/mesh"
)

// Of many events of a key the last ones are kept, in their order, and nothing of what is too much.
func TestNews_bounds(t *testing.T) {
	n := newNews()
	event := func(key string, revision int64, size int) *clientv3.Event {
		return &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision, Value: make([]byte, size)}}
	}
	for i := range int64(10_000) {
		if !n.add([]*clientv3.Event{event(fmt.Sprint("k", i%10), i, 100)}) {
			t.Fatal("too much")
		}
	}
	n.add([]*clientv3.Event{event("huge", 10_000, mesh.MaxBytes+1)})
	<-n.some
	events, err := n.take()
	if err != nil || len(events) != 10*newsOfKey+1 || events[len(events)-1].Kv.Value != nil {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i := range events[:80] {
		if want := int64(10_000 - 80 + i); events[i].Kv.ModRevision != want {
			t.Errorf("event %d has revision %d, want %d", i, events[i].Kv.ModRevision, want)
		}
	}
	enough := true
	for i := range int64(newsBytes / mesh.MaxBytes) {
		enough = enough && n.add([]*clientv3.Event{event(fmt.Sprint("k", i), i, mesh.MaxBytes)})
	}
	if events, err := n.take(); enough || len(events) > 0 || !errors.Is(err, errTooMuch) {
		t.Errorf("%t, %d events, %v", enough, len(events), err)
	}
}
