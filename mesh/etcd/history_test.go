package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// What was asked before is not behind what has been answered since, and takes nothing back.
func TestHistory_begin(t *testing.T) {
	at := func(revision int64) *pb.ResponseHeader {
		return &pb.ResponseHeader{ClusterId: 1, Revision: revision, RaftTerm: 2}
	}
	var h history
	if h.begin(at(90), h.mark()) {
		t.Error("the first answer is of another history")
	}
	asked := h.mark()
	h.follow(at(105)) // meanwhile
	if h.begin(at(100), asked) {
		t.Error("an answer to what was asked before is of another history")
	}
	if !h.behind(at(104)) {
		t.Error("what was known is forgotten")
	}
	if !h.begin(at(50), h.mark()) || h.behind(at(50)) {
		t.Error("a restored etcd is not found out")
	}
}
