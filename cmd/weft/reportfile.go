package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// reportFile is opened before the measurement, so that a path that cannot be written costs
// no results. A regular file gets its name only when it is complete. Others, such as
// /dev/stdout, are written directly.
type reportFile struct {
	flag      string // its name, for errors
	file      *os.File
	path      string
	temporary bool
}

// newReportFile prepares the file that a flag names; "" means that none is
// wanted.
func newReportFile(flag, path string) (r *reportFile, err error) {
	r = &reportFile{flag: flag, path: path}
	switch path {
	case "":
		return r, nil
	case "-":
		return nil, usagef("--%s=-: must be a file; for standard output, beside the rest that is printed there, write /dev/stdout", flag)
	}
	defer func() {
		if err != nil {
			err = cannotWrite(flag, path, err)
		}
	}()
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, errors.New("it is a directory")
	case err == nil && !info.Mode().IsRegular():
		r.file, err = os.OpenFile(path, os.O_WRONLY, 0)
		return r, err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	r.path, r.temporary = path, true
	r.file, err = os.CreateTemp(filepath.Dir(path), ".weft-report-*")
	return r, err
}

func (r *reportFile) write(content func(io.Writer) error) error {
	if r.file == nil {
		return nil
	}
	err := content(r.file)
	if err == nil && r.temporary {
		if err = r.file.Chmod(0o644); err == nil {
			err = os.Rename(r.file.Name(), r.path)
		}
	}
	if err != nil {
		return fmt.Errorf("--%s=%s: %w", r.flag, r.path, err)
	}
	what := "Pictures"
	if r.flag == "csv" {
		what = "Results"
	}
	fmt.Fprintf(os.Stderr, "\n%s are in %s.\n", what, r.path)
	return nil
}

// discard closes the file and removes what write has not put in place.
func (r *reportFile) discard() {
	if r.file == nil {
		return
	}
	r.file.Close()
	if r.temporary {
		os.Remove(r.file.Name())
	}
}
