package bugreport

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// files reads an archive back.
func files(t *testing.T, b []byte) map[string]string {
	t.Helper()
	gz, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(text)
	}
}

func TestArchive_partsAreCleanBoundedAndFailAlone(t *testing.T) {
	var b bytes.Buffer
	clean := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("SECRET"), nil) }
	a := New(&b, "report", time.Unix(1, 0), clean)
	long := []byte(strings.Repeat("a line\n", MaxPart/5))
	for _, p := range []struct {
		name string
		text []byte
		err  error
	}{
		{"plain.txt", []byte("it is SECRET"), nil},
		{"failed.txt", nil, errors.New("no such program as SECRET")},
		{"half.txt", []byte("half of it\n"), errors.New("it ended")},
		{"long.txt", long, nil},
	} {
		if err := a.Add(p.name, p.text, p.err); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * MaxParts {
		if err := a.Add("more.txt", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close("what this is"); err != nil {
		t.Fatal(err)
	}
	if len(a.Parts) != MaxParts {
		t.Errorf("%d parts, want %d", len(a.Parts), MaxParts)
	}
	got := files(t, b.Bytes())
	for name, text := range got {
		if strings.Contains(text, "SECRET") {
			t.Errorf("%s has the secret", name)
		}
		if len(text) > MaxPart+200 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
	for name, words := range map[string][]string{
		"plain.txt":  {"it is "},
		"failed.txt": {"-- this part failed: no such program as"},
		"half.txt":   {"half of it\n-- this part failed: it ended"},
		"long.txt":   {"a line\n\n-- cut here: this part has"},
		"README.txt": {"what this is", "failed: it ended", "long.txt", "cut at"},
	} {
		for _, w := range words {
			if !strings.Contains(got["report/"+name], w) {
				text := got["report/"+name]
				t.Errorf("%s does not say %q; it ends %q", name, w, text[max(0, len(text)-200):])
			}
		}
	}
}
