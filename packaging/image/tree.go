package main

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Users, since a daemon finds its own by name.
var (
	//go:embed files/passwd
	passwd []byte
	//go:embed files/group
	group []byte
)

// file is a file of the image, or a folder, which has no text.
type file struct {
	name string
	mode int64
	text []byte
}

func (f file) folder() bool { return f.text == nil }

// where the binary is, which is also in PATH.
const (
	binFolder  = "usr/local/bin"
	entrypoint = "/" + binFolder + "/weft"
)

// tree is all that is in the image.
func (p program) tree() []file {
	return []file{
		{"etc", 0o755, nil},
		{"etc/group", 0o644, group},
		{"etc/passwd", 0o644, passwd},
		{"usr", 0o755, nil},
		{"usr/local", 0o755, nil},
		{binFolder, 0o755, nil},
		{binFolder + "/weft", 0o755, p.text},
	}
}

// writeTree writes the files to a folder. Those of other names stay.
func writeTree(dir string, p program) error {
	for _, f := range p.tree() {
		name := filepath.Join(dir, f.name)
		if f.folder() {
			if err := os.MkdirAll(name, os.FileMode(f.mode)); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(name, f.text, os.FileMode(f.mode)); err != nil {
			return err
		}
	}
	return nil
}

// layer is the files as a tar, all of root and of one time.
func (p program) layer() ([]byte, error) {
	var b bytes.Buffer
	if err := writeTar(&b, p.tree(), p.time()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeTar writes files, all of root and of one time.
func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: at, Format: tar.FormatUSTAR}
		if f.folder() {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		}
		if err := t.WriteHeader(&h); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := t.Write(f.text); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return t.Close()
}
