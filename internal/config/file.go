package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"weft/internal/exitcode"
)

// MaxBytes bounds the size of a file.
const MaxBytes = 1 << 20

// Lines says on which lines of a file its keys are. It knows keys by their full names:
// tun.name, udp.peers[0].key. It has only keys that are in the file.
type Lines struct {
	file string
	at   map[string]int
}

// Of returns the Lines of a file that has no keys.
func Of(file string) Lines { return Lines{file: file} }

// Errorf makes an error that names a key and its place.
func (l Lines) Errorf(key, format string, args ...any) error {
	where := l.file
	for k := key; ; {
		if n, ok := l.at[k]; ok {
			where = fmt.Sprintf("%s:%d", l.file, n)
			break
		}
		i := strings.LastIndexAny(k, ".[")
		if i < 0 {
			break
		}
		k = k[:i]
	}
	return exitcode.AsUsage(KeyError{key, where, fmt.Errorf(format, args...)})
}

// KeyError is what is wrong with a key of a configuration.
type KeyError struct {
	Key   string
	where string // file, and line
	err   error
}

func (e KeyError) Error() string { return fmt.Sprintf("%s: %s: %v", e.where, e.Key, e.err) }
func (e KeyError) Unwrap() error { return e.err }

// Read reads a file of at most MaxBytes. who is the name of the reading program in errors.
func Read(file, who string) ([]byte, error) {
	text, err := read(file, MaxBytes)
	switch {
	case errors.Is(err, os.ErrPermission):
		err = fmt.Errorf("configuration: %s: permission denied; the user that %s runs as (key user) must be able to read it", file, who)
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("configuration: %s: there is no such file; name another with --config, or begin with %s --print-config > %s", file, who, file)
	case err != nil:
		err = fmt.Errorf("configuration: %w", err)
	}
	return text, exitcode.AsUsage(err)
}

// ReadInput reads a file of at most so many bytes that a command line names. Its errors are in
// words, and usage errors.
func ReadInput(file string, most int64) ([]byte, error) {
	text, err := read(file, most)
	return text, exitcode.AsUsage(err)
}

// read reads a file of at most so many bytes.
func read(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fileError(file, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fileError(file, err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: longer than %d bytes; name a smaller file", file, most)
	}
	return text, nil
}
