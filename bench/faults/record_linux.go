package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// record is a file of what a Bed leaves behind if it is killed. Daemons have process groups of
// their own, so they outlive it.
type record struct{ path string }

// recorded is a line of it: a process, or the Bed's directory.
type recorded struct {
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"` // when it began, as the kernel counts; tells it from a later one
	Dir   string `json:"dir,omitempty"`
}

func (r *record) add(what recorded) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// process adds one that was just started and not waited for.
func (r *record) process(pid int) error {
	start, err := startOf(pid)
	if err != nil {
		return err
	}
	return r.add(recorded{PID: pid, Start: start})
}

// clear kills the process groups that are recorded and still run, removes the directories, and
// then the record.
func (r *record) clear() (killed int, err error) {
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var l recorded
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue // cut off as the writer was killed
		}
		if l.PID > 1 {
			if start, err := startOf(l.PID); err == nil && start == l.Start && syscall.Kill(-l.PID, syscall.SIGKILL) == nil {
				killed++
			}
		}
		if strings.HasPrefix(filepath.Base(l.Dir), dirPrefix) {
			err = errors.Join(err, os.RemoveAll(l.Dir))
		}
	}
	return killed, errors.Join(err, r.remove())
}

func (r *record) remove() error {
	if err := os.Remove(r.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// startOf is when a process began, in the kernel's ticks since the machine's start: field 22 of
// /proc/PID/stat. The second field is in parentheses and may have spaces.
func startOf(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	rest := string(text[bytes.LastIndexByte(text, ')')+1:])
	if fields := strings.Fields(rest); len(fields) > 19 {
		return fields[19], nil
	}
	return "", fmt.Errorf("/proc/%d/stat has too few fields: %q", pid, text)
}
