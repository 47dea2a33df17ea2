// Package lists has directories of a mesh that others write: a list, a file, DNS. Hosts do
// not register there. So a host's key must be in the list, and it cannot be renewed. Who
// writes the list may give a name another key.
package lists

import (
	"context"

	"weft/mesh"
	"weft/mesh/join"
)

// list is what all directories of this package have in common.
type list struct{}

// Put returns join.ErrReadOnly.
func (list) Put(context.Context, mesh.Member) (int64, error) { return 0, join.ErrReadOnly }

// Close does nothing.
func (list) Close() error { return nil }

// numbered gives a member its place in the order of all: of two with overlapping prefixes
// the first one has them. What it has seen is of no meaning in a list.
func numbered(m mesh.Member, i int) mesh.Member {
	m.Seen, m.Since = 0, int64(i+1)
	return m
}

// Static is a directory that never changes.
func Static(members ...mesh.Member) join.Directory {
	s := &static{}
	for i, m := range members {
		s.members = append(s.members, numbered(m, i))
	}
	return s
}

type static struct {
	list
	members []mesh.Member
}

func (s *static) Watch(ctx context.Context, told func(join.Update)) error {
	told(join.Update{All: true, Put: s.members})
	<-ctx.Done()
	return ctx.Err()
}
