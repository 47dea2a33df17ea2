package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// history is how far etcd is known to be. One that is restored from a backup begins lower: with
// lower revisions, lower terms or another cluster ID. A watch that goes on then waits for revisions
// that have been, and tells nothing.
type history struct {
	mu    sync.Mutex
	known mark
}

var errRestored = errors.New("etcd: it has been restored from a backup: all is read anew")

// behind reports whether an answer is of an earlier time, or of another history.
func (h *history) behind(r *pb.ResponseHeader) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known.isBehind(r)
}

func (m mark) isBehind(r *pb.ResponseHeader) bool {
	return m.isKnown && (r.GetClusterId() != m.cluster || r.GetRevision() < m.revision || r.GetRaftTerm() < m.term)
}

// follow takes note of an answer.
func (h *history) follow(r *pb.ResponseHeader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known.isBehind(r) && r != nil {
		h.known = markOf(r)
	}
}

// mark is how far etcd was known to be at some time.
type mark struct {
	isKnown  bool
	cluster  uint64
	revision int64
	term     uint64
}

func (h *history) mark() mark {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known
}

// begin takes note of an answer to what was asked at a mark. It cannot be behind that, but if it is of
// another history: it reports whether it is. It may be behind what has been answered since.
func (h *history) begin(r *pb.ResponseHeader, asked mark) (restored bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if restored = asked.isBehind(r); restored || !h.known.isBehind(r) {
		h.known = markOf(r)
	}
	return restored
}

func markOf(r *pb.ResponseHeader) mark {
	return mark{true, r.GetClusterId(), r.GetRevision(), r.GetRaftTerm()}
}

// restored asks a quorum of etcd whether it has been restored. A member may be behind for a while.
func (d *Directory) restored(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := d.history.mark()
	r, err := d.c.Client.Get(ctx, d.members(), clientv3.WithCountOnly())
	return err == nil && asked.isBehind(r.Header)
}

// explain says what to do about an error of etcd's.
func explain(err error) error {
	is := func(target error) bool { // what a call for a token fails with has its text alone
		return errors.Is(err, target) || strings.Contains(err.Error(), target.Error())
	}
	switch {
	case is(rpctypes.ErrNoSpace):
		return fmt.Errorf("etcd is full and takes no registrations (%w): compact and defragment it, and then etcdctl alarm disarm", err)
	case is(rpctypes.ErrPermissionDenied):
		return fmt.Errorf("etcd: this host's user may not do that (%w): it must read all of the mesh's prefix and write the host's own key", err)
	case is(rpctypes.ErrUserEmpty):
		return fmt.Errorf("etcd wants a user (%w): give user and password_file, or cert and key", err)
	case is(rpctypes.ErrAuthFailed):
		return fmt.Errorf("etcd: the user or the password is wrong (%w)", err)
	}
	return fmt.Errorf("etcd: %w", err)
}
