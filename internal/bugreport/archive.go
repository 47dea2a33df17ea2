// Package bugreport writes an archive of parts, each of bounded size. A part that cannot be had
// says why in its place, so that one failure costs no more than its part. The package is pure:
// who calls it gathers the parts.
package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	// MaxPart bounds a part, in bytes.
	MaxPart = 2 << 20
	// MaxParts bounds how many there are.
	MaxParts = 256
)

// Part says what became of one.
type Part struct {
	Name  string
	Bytes int
	Cut   bool
	Err   error
}

// Archive is a .tar.gz being written, all of whose files are in one folder. Clean takes out of
// each part what must not be in it.
type Archive struct {
	Parts []Part

	dir   string
	now   time.Time
	clean func([]byte) []byte
	gz    *gzip.Writer
	tar   *tar.Writer
}

// New begins an archive in w with the folder dir, whose files are of the time now. clean is
// applied to each part, before it is cut.
func New(w io.Writer, dir string, now time.Time, clean func([]byte) []byte) *Archive {
	gz := gzip.NewWriter(w)
	return &Archive{dir: dir, now: now, clean: clean, gz: gz, tar: tar.NewWriter(gz)}
}

// Add writes a part: text, the error that kept it from being whole, or both. It returns the
// archive's own errors alone.
func (a *Archive) Add(name string, text []byte, failed error) error {
	if len(a.Parts) >= MaxParts {
		return nil
	}
	p := Part{Name: name, Err: failed}
	text = a.clean(text)
	if p.Cut = len(text) > MaxPart; p.Cut {
		text = fmt.Appendf(cutAt(text, MaxPart), "\n-- cut here: this part has %d bytes, and the report takes %d of each\n", len(text), MaxPart)
	}
	if failed != nil {
		text = fmt.Appendf(text, "-- this part failed: %s\n", a.clean([]byte(failed.Error())))
	}
	p.Bytes = len(text)
	a.Parts = append(a.Parts, p)
	return a.write(name, text)
}

// cutAt returns the beginning of a text, without a half line.
func cutAt(text []byte, n int) []byte {
	text = text[:n:n]
	if i := bytes.LastIndexByte(text, '\n'); i > n/2 {
		text = text[:i+1]
	}
	return text[:len(text):len(text)]
}

func (a *Archive) write(name string, text []byte) error {
	h := &tar.Header{Name: path.Join(a.dir, name), Mode: 0o600, Size: int64(len(text)), ModTime: a.now, Typeflag: tar.TypeReg}
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := a.tar.Write(text)
	return err
}

// Close writes what the parts are, in README.txt behind about, and ends the archive.
func (a *Archive) Close(about string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", about)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range a.Parts {
		note := ""
		if p.Cut {
			note = fmt.Sprintf("cut at %d bytes", MaxPart)
		}
		if p.Err != nil {
			note = "failed: " + string(a.clean([]byte(p.Err.Error())))
		}
		fmt.Fprintf(t, "%s\t%d bytes\t%s\n", p.Name, p.Bytes, note)
	}
	t.Flush()
	if err := a.write("README.txt", []byte(b.String())); err != nil {
		return err
	}
	if err := a.tar.Close(); err != nil {
		return err
	}
	return a.gz.Close()
}
