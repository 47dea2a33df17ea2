package etcd

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

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
	gets     int   // that looked for news
	hangs    int   // Gets that are not answered
	lag      int64 // of keep-alives' revisions
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
