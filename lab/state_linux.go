package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weft/internal/kernel"
)

// labState is written before anything is built, so that a process that starts
// after a crash knows that there is something to clear away.
type labState struct {
	labSettings
	Ready     bool     `json:"ready"`     // built to the end
	Ephemeral bool     `json:"ephemeral"` // belongs to a process, and is to go with it
	Instance  string   `json:"instance"`  // tells labs of one name apart: random
	Notes     []string `json:"notes,omitempty"`
	Failures  failures `json:"failures,omitempty"`
}

func statePath(name string) string { return filepath.Join(kernel.RunDir, name+".json") }
func lockPath(name string) string  { return filepath.Join(kernel.RunDir, name+".lock") }

// readState returns nil when the lab has no state. State that cannot be read
// is that of a half-built lab.
func readState(name string) (*labState, error) {
	b, err := os.ReadFile(statePath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, kernel.Explain(err)
	}
	var s labState
	if json.Unmarshal(b, &s) != nil {
		return &labState{}, nil
	}
	return &s, nil
}

func writeState(name string, s labState) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	tmp := statePath(name) + ".new"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return kernel.Explain(err)
	}
	return os.Rename(tmp, statePath(name))
}

// Gone reports whether the lab that was opened is no more: it has been taken down, or that has begun.
// One that was built in its place does not count. It is safe for concurrent use.
func (l *Lab) Gone() bool {
	s, err := readState(l.Config.Name)
	return err == nil && (s == nil || !s.Ready || s.Instance != l.instance)
}

// unready has all who look at a lab's state know that it is about to go.
func unready(name string) error {
	s, err := readState(name)
	if err != nil || s == nil || !s.Ready {
		return err
	}
	s.Ready = false
	return writeState(name, *s)
}

func removeState(name string) error {
	for _, path := range []string{statePath(name), statePath(name) + ".new"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kernel.Explain(err)
		}
	}
	return nil
}

// labLock is held while a lab is changed, and by the owner of an ephemeral lab
// as long as it lives. The kernel releases it when the process dies.
type labLock struct {
	name string
	file *os.File
}

// inUse is the error for a lab that another process has locked.
type inUse struct{ error }

func lockLab(name string) (*labLock, error) {
	f, err := kernel.LockFile(lockPath(name), func() error { return kernel.Explain(os.MkdirAll(kernel.RunDir, 0o755)) })
	if e := (kernel.LockedError{}); errors.As(err, &e) {
		return nil, inUse{fmt.Errorf("lab %s is in use by process %s: stop that, or choose another --name", name, e.Process)}
	}
	if err != nil {
		return nil, fmt.Errorf("lock lab %s: %w", name, err)
	}
	return &labLock{name, f}, nil
}

// release lets go of the lock. The file goes with a lab that is no more.
func (l *labLock) release() {
	if _, err := os.Stat(statePath(l.name)); errors.Is(err, fs.ErrNotExist) {
		os.Remove(lockPath(l.name))
		kernel.RemoveRunDirs(kernel.RunDir) // if it was the last lab
	}
	l.file.Close()
}
