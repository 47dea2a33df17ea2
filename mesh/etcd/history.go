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
	mu       sync.Mutex
	isKnown  bool
	cluster  uint64
	revision int64
	term     uint64
}

var errRestored = errors.New("etcd: it has been restored from a backup: all is read anew")

// behind reports whether an answer is of an earlier time, or of another history.
func (h *history) behind(r *pb.ResponseHeader) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isBehind(r)
}

func (h *history) isBehind(r *pb.ResponseHeader) bool {
	return h.isKnown && (r.GetClusterId() != h.cluster || r.GetRevision() < h.revision || r.GetRaftTerm() < h.term)
}

// follow takes note of an answer.
func (h *history) follow(r *pb.ResponseHeader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isBehind(r) && r != nil {
		h.cluster, h.revision, h.term, h.isKnown = r.ClusterId, r.Revision, r.RaftTerm, true
	}
}

// begin takes note of an answer that is of no earlier time, so that one which is behind is of
// another history. It reports whether that has changed since the last call.
func (h *history) begin(r *pb.ResponseHeader) (restored bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	restored = h.isBehind(r)
	h.cluster, h.revision, h.term, h.isKnown = r.GetClusterId(), r.GetRevision(), r.GetRaftTerm(), true
	return restored
}

// restored asks a quorum of etcd whether it has been restored. A member may be behind for a while.
func (d *Directory) restored(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := d.c.Client.Get(ctx, d.members(), clientv3.WithCountOnly())
	return err == nil && d.history.behind(r.Header)
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
