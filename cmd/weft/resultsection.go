package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// resultSection is a section to be added to a file of results. A zero path
// means that none is wanted.
type resultSection struct{ path string }

// openSection checks before the measurement that the file exists and can be written.
func openSection(path string) (resultSection, error) {
	if path == "" {
		return resultSection{}, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return resultSection{}, fmt.Errorf("%w: run weft in its source tree, or name another file", err)
	}
	f, err := os.OpenFile(target, os.O_RDWR, 0)
	if err != nil {
		return resultSection{}, err
	}
	return resultSection{target}, f.Close()
}

// add writes a section before all others, so that the newest comes first. Readers never see
// half a file.
func (s resultSection) add(content func(io.Writer) error) error {
	if s.path == "" {
		return nil
	}
	old, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	var section bytes.Buffer
	if err := content(&section); err != nil {
		return err
	}
	head, rest := old, []byte(nil)
	if i := bytes.Index(old, []byte("\n## ")); i >= 0 {
		head, rest = old[:i+1], old[i+1:]
	}
	return replaceFile(s.path, bytes.Join([][]byte{head, section.Bytes(), rest}, nil))
}

// replaceFile keeps the permissions of the file.
func replaceFile(path string, content []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".weft-results-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// writeSection writes a heading dated today, the command, the machine, what
// the figures are, and a table whose first row is its head.
func writeSection(w io.Writer, title, command, about string, rows [][]string) error {
	_, err := fmt.Fprintf(w, "## %s: %s\n\n`%s`\n\nMachine: %s: %s. %s\n\n",
		time.Now().Format(time.DateOnly), title, command, cpuModel(), machine(), about)
	if err != nil {
		return err
	}
	return writeTable(w, rows)
}

// writeTable writes a table whose first row is its head; no rows are no table.
func writeTable(w io.Writer, rows [][]string) (err error) {
	for i, row := range rows {
		if err == nil {
			_, err = fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		}
		if i == 0 && err == nil {
			_, err = fmt.Fprintln(w, strings.Repeat("|---", len(row))+"|")
		}
	}
	if err == nil && len(rows) > 0 {
		_, err = fmt.Fprintln(w)
	}
	return err
}
