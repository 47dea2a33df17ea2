// Package keyfile keeps a host's private keys of a mesh in a file. Each line is a key: 32 bytes
// in base64, as weft keygen makes them, behind the key's generation and a colon if that is not
// 0. The first one is in use. A second one is there while it takes the place of the first.
package keyfile

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weft/mesh"
)

// maxBytes bounds a file.
const maxBytes = 4096

// Read reads a file. No error contains any of a key. The file must be its owner's alone, or root's that a group may read.
func Read(path string) ([]mesh.PrivateKey, error) {
	f, err := openPrivate(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	keys, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// openPrivate opens a file that must be its owner's alone, or root's that a group may read.
func openPrivate(path string) (*os.File, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such file; weft keygen --out %s makes it: %w", path, path, fs.ErrNotExist)
	case err != nil:
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.Mode().Perm()&others(st) != 0 {
		err = fmt.Errorf("%s: others than its owner can read it (%v); chmod 600 %s", path, st.Mode().Perm(), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func parse(b []byte) (keys []mesh.PrivateKey, err error) {
	lines := strings.Fields(string(b))
	if n := len(lines); n < 1 || n > mesh.MaxKeys || len(b) > maxBytes {
		return nil, fmt.Errorf("has %d keys: must have 1 or %d; weft keygen makes one", n, mesh.MaxKeys)
	}
	for i, line := range lines {
		var generation uint64
		if g, rest, ok := strings.Cut(line, ":"); ok {
			if generation, err = strconv.ParseUint(g, 10, 8); err != nil || generation >= mesh.Generations {
				return nil, fmt.Errorf("key %d: its generation is no number below %d", i+1, mesh.Generations)
			}
			line = rest
		}
		secret, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(secret) != 32 {
			return nil, fmt.Errorf("key %d is not 32 bytes in base64; weft keygen makes one", i+1)
		}
		k, err := mesh.ParsePrivateKey(uint8(generation), [32]byte(secret))
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Write puts keys into the place of those of a file. After an error, or if the machine stops
// meanwhile, the file has the former ones.
func Write(path string, keys []mesh.PrivateKey) error {
	return replace(path, format(keys))
}

func format(keys []mesh.PrivateKey) []byte {
	var b bytes.Buffer
	for _, k := range keys {
		secret := k.Secret()
		if k.Generation != 0 || len(keys) > 1 {
			fmt.Fprintf(&b, "%d:", k.Generation)
		}
		fmt.Fprintln(&b, base64.StdEncoding.EncodeToString(secret[:]))
	}
	return b.Bytes()
}

// replace puts bytes into the place of a file, which is its owner's alone.
func replace(path string, b []byte) error {
	return put(path, b, os.Rename)
}

// create makes a file with bytes, its owner's alone, whole or not at all. Of several at once one
// makes it, and the others get fs.ErrExist.
func create(path string, b []byte) error {
	return put(path, b, func(from, to string) error {
		err := os.Link(from, to)
		if err == nil {
			return os.Remove(from)
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Rename(from, to) // the file system has no links
	})
}

// put writes bytes beside a file and has them take their place.
func put(path string, b []byte, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return fmt.Errorf("keep the keys: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = place(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep the keys: %w", err), os.Remove(f.Name()))
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil { // not all systems and file systems can
		d.Sync()
		d.Close()
	}
	return nil
}

// ReadOrMake reads a file, or makes it with a new key if there is none. Who starts at the same time
// gets the same key.
func ReadOrMake(path string) ([]mesh.PrivateKey, error) {
	keys, err := Read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	keys = []mesh.PrivateKey{mesh.NewPrivateKey(0)}
	if err := create(path, format(keys)); errors.Is(err, fs.ErrExist) {
		return Read(path)
	} else if err != nil {
		return nil, err
	}
	return keys, nil
}
