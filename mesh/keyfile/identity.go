package keyfile

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"weft/mesh"
)

// Identity reads a host's identity: 32 bytes in base64, in a file that is its owner's alone. It makes
// the file with a new one if there is none, the same for all who start at the same time. No error
// contains any of it.
func Identity(path string) (mesh.Identity, error) {
	f, err := openPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		i := mesh.NewIdentity()
		seed := i.Seed()
		err := create(path, []byte(base64.StdEncoding.EncodeToString(seed[:])+"\n"))
		if errors.Is(err, fs.ErrExist) {
			return Identity(path)
		}
		return i, err
	}
	if err != nil {
		return mesh.Identity{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return mesh.Identity{}, err
	}
	seed, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(b)))
	if err != nil || len(seed) != 32 {
		return mesh.Identity{}, fmt.Errorf("%s: is not 32 bytes in base64; without the file the next start makes one, and others refuse this host until its name is removed from their files of known peers", path)
	}
	return mesh.ParseIdentity([32]byte(seed))
}

// Known is a file of known peers, each in a line: its identity in base64, a space and its name. It is
// a join.Pins. A line that is removed has the name be whose it is the next time.
type Known struct {
	Path string
	// Also is another such file, which is read and not written; "": there is none. Of a name that is in
	// both this one says whose it is.
	Also string

	mu sync.Mutex
}

// maxKnown bounds a file of known peers.
const maxKnown = 64 << 20

// Load reads the files. There need not be one.
func (k *Known) Load() (map[string]mesh.PublicIdentity, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, also, err := k.load()
	maps.Copy(all, also)
	return all, err
}

func (k *Known) load() (all, also map[string]mesh.PublicIdentity, err error) {
	if all, err = loadKnown(k.Path); err == nil && k.Also != "" {
		also, err = loadKnown(k.Also)
	}
	if err != nil {
		return nil, nil, err
	}
	return all, also, nil
}

func loadKnown(path string) (map[string]mesh.PublicIdentity, error) {
	all := make(map[string]mesh.PublicIdentity)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKnown+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxKnown {
		return nil, fmt.Errorf("%s: is longer than %d bytes: remove the lines of hosts that are gone", path, maxKnown)
	}
	number := 0
	for line := range strings.Lines(string(b)) {
		if number++; strings.TrimSpace(line) == "" {
			continue
		}
		identity, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var p mesh.PublicIdentity
		if err := p.UnmarshalText([]byte(identity)); err != nil || !ok || name == "" {
			return nil, fmt.Errorf("%s:%d: must be an identity of 32 bytes in base64, a space and a name", path, number)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("%s:%d: %q is there twice: remove one of the lines", path, number, name)
		}
		if p != (mesh.PublicIdentity{}) { // nobody's: as if it were not there
			all[name] = p
		}
	}
	return all, nil
}

// Keep adds names to the file. What is there is whole, whatever happens meanwhile.
func (k *Known) Keep(fresh map[string]mesh.PublicIdentity) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, also, err := k.load()
	if err != nil {
		return err
	}
	changed := false
	for name, p := range fresh {
		_, here := all[name]
		if _, there := also[name]; !here && !there {
			all[name], changed = p, true
		}
	}
	if !changed {
		return nil
	}
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%v %s\n", all[name], name)
	}
	return replace(k.Path, b.Bytes())
}
