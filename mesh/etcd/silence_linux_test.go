package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"weft/mesh"
	"weft/mesh/join"
)

// fakeEtcd answers as etcd does. What of it is not here is nil.
type fakeEtcd struct {
	clientv3.KV
	clientv3.Lease
	clientv3.Watcher

	mu       sync.Mutex
	revision int64
	newest   int64 // the revision of the newest key of the mesh
	keys     int64
	gets     int           // that looked for news
	hangs    int           // Gets that are not answered
	lag      int64         // of keep-alives' revisions
	slow     time.Duration // that Gets take that do not look for news
	creates  bool
	watch    chan clientv3.WatchResponse
}

func (f *fakeEtcd) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 1, RaftTerm: 1, Revision: f.revision}
}

func (f *fakeEtcd) Get(ctx context.Context, _ string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hangs > 0 {
		f.hangs--
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return nil, ctx.Err()
	}
	op := clientv3.OpGet("", options...)
	if slow := f.slow; slow > 0 && op.MinModRev() == 0 {
		f.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(slow):
		}
		f.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	r := &clientv3.GetResponse{Header: f.header(), Count: f.keys}
	if op.MinModRev() > 0 {
		if f.gets++; f.newest >= op.MinModRev() {
			r.Kvs = []*mvccpb.KeyValue{{ModRevision: f.newest}}
		}
	}
	return r, nil
}

func (f *fakeEtcd) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = make(chan clientv3.WatchResponse)
	if !f.creates {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
	}
	c := f.watch
	context.AfterFunc(ctx, func() { close(c) })
	return c
}

func (f *fakeEtcd) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ResponseHeader: f.header(), ID: 7, TTL: 9}, nil
}

func (f *fakeEtcd) KeepAlive(ctx context.Context, _ clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	c := make(chan *clientv3.LeaseKeepAliveResponse)
	go func() {
		defer close(c)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(3 * time.Second):
			}
			f.mu.Lock()
			h := f.header()
			h.Revision -= f.lag
			f.mu.Unlock()
			c <- &clientv3.LeaseKeepAliveResponse{ResponseHeader: h, ID: 7, TTL: 9}
		}
	}()
	return c, nil
}

func (f *fakeEtcd) Revoke(context.Context, clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return &clientv3.LeaseRevokeResponse{}, nil
}

func (f *fakeEtcd) Close() error { return nil }

func (f *fakeEtcd) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// event tells of a key of the mesh.
func (f *fakeEtcd) event(kind mvccpb.Event_EventType) {
	f.mu.Lock()
	f.revision++
	f.newest = f.revision
	kv := &mvccpb.KeyValue{Key: []byte(prefix + "/members/61"), ModRevision: f.revision, CreateRevision: f.revision}
	if f.keys++; kind == clientv3.EventTypeDelete {
		f.keys -= 2
	}
	r := clientv3.WatchResponse{Header: f.header(), Events: []*clientv3.Event{{Type: kind, Kv: kv}}}
	w := f.watch
	f.mu.Unlock()
	w <- r
}

func silent(t *testing.T, change func(f *fakeEtcd), check func(f *fakeEtcd, ended func() error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeEtcd{revision: 50, keys: 3, newest: 40, creates: true}
		client := clientv3.NewCtxClient(t.Context())
		client.KV, client.Lease, client.Watcher = f, f, f
		d := open(t, client, 9*time.Second)
		if change != nil {
			change(f)
		}
		d.mu.Lock()
		if err := d.grant(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var ended error
		go func() {
			err := d.Watch(ctx, func(join.Update) {})
			mu.Lock()
			defer mu.Unlock()
			ended = err
		}()
		time.Sleep(time.Second)
		check(f, func() error { mu.Lock(); defer mu.Unlock(); return ended })
		cancel()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

// A watch that etcd does not create ends, so that another member is asked.
func TestDirectory_notCreated(t *testing.T) {
	silent(t, func(f *fakeEtcd) { f.creates = false }, func(_ *fakeEtcd, ended func() error) {
		if time.Sleep(creation - 2*time.Second); ended() != nil {
			t.Error(ended())
		}
		if time.Sleep(2 * time.Second); !errors.Is(ended(), errNotCreated) {
			t.Error(ended())
		}
	})
}

// A member of etcd that does not answer is not waited for: others are there.
func TestDirectory_unanswered(t *testing.T) {
	silent(t, func(f *fakeEtcd) { f.hangs = 1 }, func(f *fakeEtcd, ended func() error) {
		time.Sleep(soon)
		if f.set(func() {}); f.watch == nil || ended() != nil {
			t.Error("there is no watch:", ended())
		}
	})
}

// A watch that has fallen silent ends a few seconds after a keep-alive has said that there is more.
func TestDirectory_silent(t *testing.T) {
	for what, more := range map[string]func(f *fakeEtcd){
		"a key is new":  func(f *fakeEtcd) { f.newest = f.revision; f.keys++ },
		"a key differs": func(f *fakeEtcd) { f.newest = f.revision },
		"a key is gone": func(f *fakeEtcd) { f.keys-- },
		"behind":        func(f *fakeEtcd) { f.newest, f.lag = f.revision, 1 }, // the member of etcd is
	} {
		t.Run(what, func(t *testing.T) {
			silent(t, nil, func(f *fakeEtcd, ended func() error) {
				time.Sleep(time.Minute)
				f.event(clientv3.EventTypePut) // it tells this
				f.event(clientv3.EventTypeDelete)
				f.set(func() { f.revision++; more(f) })
				if time.Sleep(3*time.Second + 2*grace + time.Second); !errors.Is(ended(), errSilent) {
					t.Error(ended())
				}
			})
		})
	}
}

// A watch goes on whose mesh is quiet in an etcd that others write, and one that tells a little late.
func TestDirectory_quiet(t *testing.T) {
	silent(t, nil, func(f *fakeEtcd, ended func() error) {
		for range 100 {
			time.Sleep(3 * time.Second)
			f.set(func() { f.revision += 5 })
		}
		f.set(func() {
			if f.gets < 30 || f.gets > 101 { // one at a time
				t.Errorf("%d Gets for 100 keep-alives", f.gets)
			}
		})
		time.Sleep(10 * time.Second) // nothing is being asked any more
		for range 100 {              // the key is there before the watch tells of it
			f.set(func() { f.newest = f.revision + 1; f.revision += 2 })
			time.Sleep(grace + grace/4)
			f.event(clientv3.EventTypePut)
			f.event(clientv3.EventTypeDelete)
			time.Sleep(2600 * time.Millisecond) // a keep-alive comes at another time then
		}
		before := f.gets
		if time.Sleep(time.Hour); ended() != nil || f.gets > before+1 {
			t.Error(ended(), f.gets, before)
		}
	})
}

// While a host reads all anew, what the former watch has told does not end that: not if a member of etcd is slow,
// nor if one does not answer, and there is more in etcd.
func TestDirectory_readsAnewUndisturbed(t *testing.T) {
	for what, trouble := range map[string]func(f *fakeEtcd){
		"slow":          func(f *fakeEtcd) { f.slow = 2900 * time.Millisecond },
		"one hangs":     func(f *fakeEtcd) { f.hangs = 1 },
		"two hang":      func(f *fakeEtcd) { f.hangs = 2 },
		"slow and hang": func(f *fakeEtcd) { f.slow, f.hangs = 2*time.Second, 2 },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeEtcd{revision: 50, keys: 3, newest: 40, creates: true}
				client := clientv3.NewCtxClient(t.Context())
				client.KV, client.Lease, client.Watcher = f, f, f
				d := open(t, client, 9*time.Second)
				d.mu.Lock()
				if err := d.grant(t.Context()); err != nil {
					t.Fatal(err)
				}
				d.mu.Unlock()
				watch := func(during func(), last time.Duration) (told int, err error) {
					ctx, cancel := context.WithTimeout(t.Context(), last)
					defer cancel()
					time.AfterFunc(last/2, during)
					err = d.Watch(ctx, func(join.Update) { told++ })
					return told, err
				}
				if told, err := watch(func() {}, 10*time.Second); told != 1 || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("told %d times, %v", told, err)
				}
				for range 4 {
					time.Sleep(700 * time.Millisecond)
					f.set(func() { f.revision++; f.newest, f.keys = f.revision, f.keys+1; trouble(f) })
					if told, err := watch(func() { f.set(func() { f.slow = 0 }) }, 30*time.Second); told != 1 || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("told %d times, %v", told, err)
					}
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// In an etcd that others write, the hosts of a large mesh do not have it look through all keys all the time, and
// still find out that a watch has fallen silent.
func TestDirectory_readsSometimes(t *testing.T) {
	const keys = 5000
	silent(t, func(f *fakeEtcd) { f.keys = keys }, func(f *fakeEtcd, ended func() error) {
		for range 1200 {
			time.Sleep(3 * time.Second)
			f.set(func() { f.revision += 5 })
		}
		shortest, longest := readEach(keys)/2, readEach(keys)*3/2+askEach(keys)*3/2+10*time.Second
		f.set(func() {
			if hour := time.Hour; f.gets < int(hour/longest) || f.gets > int(hour/shortest)+1 {
				t.Errorf("%d times in an hour", f.gets)
			}
			f.revision++
			f.newest = f.revision
		})
		if time.Sleep(longest); !errors.Is(ended(), errSilent) {
			t.Error(ended())
		}
	})
}

// Some of the keys are not told of as if they were all.
func TestDirectory_tooMany(t *testing.T) {
	for keys, want := range map[int64]error{mesh.MaxMembers: nil, mesh.MaxMembers + 1: errTooMany} {
		silent(t, func(f *fakeEtcd) { f.keys = keys }, func(_ *fakeEtcd, ended func() error) {
			if err := ended(); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "65537, and a mesh has 65536 members at most: remove") {
				t.Errorf("%d keys: %v", keys, err)
			}
		})
	}
}
