package etcd

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/mesh"
)

// news are events of a watch that nobody has looked at yet. Those of one key follow each other, and
// of these the last ones are kept: whoever registers again and again makes no more work than that.
type news struct {
	mu    sync.Mutex
	keys  map[string][]*clientv3.Event
	bytes int
	err   error         // why no more come
	some  chan struct{} // holds something if there is something
}

// Bounds of news.
const (
	newsOfKey = 8 // a key that is replaced makes three
	newsBytes = 64 << 20
)

var errTooMuch = errors.New("etcd: there is more news than this host can take: it reads all anew")

func newNews() *news {
	return &news{keys: make(map[string][]*clientv3.Event), some: make(chan struct{}, 1)}
}

// add takes events. It reports false if there are too many.
func (n *news) add(events []*clientv3.Event) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range events {
		if len(e.Kv.Value) > mesh.MaxBytes {
			e.Kv.Value = nil // no registration
		}
		key := string(e.Kv.Key)
		list := append(n.keys[key], e)
		n.bytes += len(e.Kv.Key) + len(e.Kv.Value)
		if len(list) > newsOfKey {
			n.bytes -= len(list[0].Kv.Key) + len(list[0].Kv.Value)
			list = slices.Delete(list, 0, 1)
		}
		n.keys[key] = list
	}
	if n.bytes > newsBytes {
		n.keys, n.bytes, n.err = make(map[string][]*clientv3.Event), 0, errTooMuch
	}
	n.signal()
	return n.err == nil
}

// end says that no more come.
func (n *news) end(why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil {
		n.err = why
	}
	n.signal()
}

func (n *news) signal() {
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// take returns all in the order of etcd's revisions, and why no more come.
func (n *news) take() (events []*clientv3.Event, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, list := range n.keys {
		events = append(events, list...)
	}
	clear(n.keys)
	n.bytes = 0
	slices.SortFunc(events, func(a, b *clientv3.Event) int { return cmp.Compare(a.Kv.ModRevision, b.Kv.ModRevision) })
	return events, n.err
}
