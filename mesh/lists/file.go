package lists

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"weft/mesh"
	"weft/mesh/join"
)

// MaxFile is how many bytes a file of members may have.
const MaxFile = 16 << 20

// File is a directory in a file: a JSON array of mesh.Member. It is read again when it
// changes, also if another file takes its place, as Kubernetes and editors do. What is not
// good is not taken: the former members stay, and the Session says why.
func File(path string) join.Directory { return &file{path: path} }

type file struct {
	list
	path string
}

// settled is how long a file has not changed when it is read.
const settled = 20 * time.Millisecond

func (f *file) Watch(ctx context.Context, told func(join.Update)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", f.path, err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("watch %s: %w", filepath.Dir(f.path), err)
	}
	var former []byte
	for read := time.After(0); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.Errors:
			return fmt.Errorf("watch %s: %w", f.path, err)
		case <-w.Events: // of any file there: a link to a link may have changed
			if read == nil {
				read = time.After(settled)
			}
		case <-read:
			read = nil
			b, err := f.bytes()
			if err != nil {
				return err
			}
			if former != nil && bytes.Equal(b, former) {
				continue
			}
			members, err := ParseMembers(b)
			if err != nil {
				return fmt.Errorf("%s: %w", f.path, err)
			}
			told(join.Update{All: true, Put: members})
			former = b
		}
	}
}

func (f *file) bytes() ([]byte, error) {
	if info, err := os.Stat(f.path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", f.path)
	}
	r, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", f.path, MaxFile)
	}
	return b, nil
}

// ParseMembers reads a JSON array of members. Each name may be there once. The earlier of
// two members that have overlapping prefixes has them.
func ParseMembers(b []byte) ([]mesh.Member, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("no array of members: %w", err)
	}
	if len(raw) > mesh.MaxMembers {
		return nil, fmt.Errorf("%d members: may be %d", len(raw), mesh.MaxMembers)
	}
	members, names := make([]mesh.Member, 0, len(raw)), make(map[string]bool)
	for i, r := range raw {
		m, err := mesh.DecodeStrict(r)
		if err != nil {
			return nil, fmt.Errorf("member %d: %w", i, err)
		}
		if names[m.Name] {
			return nil, fmt.Errorf("member %d: the name %q is there twice", i, m.Name)
		}
		names[m.Name] = true
		members = append(members, numbered(m, i))
	}
	return members, nil
}
