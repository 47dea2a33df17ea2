package main

import (
	"fmt"
	"os"
	"path/filepath"

	"weft/bench/report"
)

// reportFile is opened before the measurement, so that a path that cannot be
// written costs no results, and takes its name only when it is complete.
type reportFile struct {
	file *os.File
	path string
}

// newReportFile prepares the file; "" means that none is wanted.
func newReportFile(path string) (*reportFile, error) {
	if path == "" {
		return &reportFile{}, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".weft-report-*")
	if err != nil {
		return nil, fmt.Errorf("--report=%s: cannot write there: %w", path, err)
	}
	return &reportFile{f, path}, nil
}

func (r *reportFile) write(content report.Report) error {
	if r.file == nil {
		return nil
	}
	err := report.Write(r.file, content)
	if err == nil {
		err = r.file.Chmod(0o644)
	}
	if err == nil {
		err = os.Rename(r.file.Name(), r.path)
	}
	if err != nil {
		return fmt.Errorf("--report=%s: %w", r.path, err)
	}
	fmt.Fprintf(os.Stderr, "\nPictures are in %s.\n", r.path)
	return nil
}

// discard removes what write has not put in place.
func (r *reportFile) discard() {
	if r.file != nil {
		r.file.Close()
		os.Remove(r.file.Name())
	}
}
