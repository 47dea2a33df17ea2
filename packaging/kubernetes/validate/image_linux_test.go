package validate

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// image is an unpacked container image.
type image struct {
	root   string // its files
	config v1.ImageConfig
}

// built is the image, which all tests share.
var built struct {
	once  sync.Once
	dir   string
	image image
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// theImage builds the image once.
func theImage(t *testing.T) image {
	t.Helper()
	built.once.Do(func() {
		var err error
		if built.dir, err = os.MkdirTemp("", "weft-image-"); err != nil {
			t.Fatal(err)
		}
		built.image = buildImage(t, built.dir)
	})
	if built.image.root == "" {
		t.Fatal("there is no image")
	}
	return built.image
}

// buildImage builds the image as a user does, and unpacks it.
func buildImage(t *testing.T, dir string) image {
	t.Helper()
	file := filepath.Join(dir, "weft.tar")
	c := exec.Command("go", "run", ".", "-o", file)
	c.Dir = filepath.Join("..", "..", "image")
	c.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
	layout := filepath.Join(dir, "layout")
	open(t, file, func(r io.Reader) { unpack(t, r, layout) })
	blob := func(d v1.Descriptor) string { return filepath.Join(layout, "blobs", "sha256", d.Digest.Encoded()) }
	var index v1.Index
	parse(t, filepath.Join(layout, "index.json"), &index)
	parse(t, blob(index.Manifests[0]), &index) // of architectures
	var manifest v1.Manifest
	parse(t, blob(index.Manifests[0]), &manifest)
	var config v1.Image
	parse(t, blob(manifest.Config), &config)
	i := image{filepath.Join(dir, "root"), config.Config}
	for _, l := range manifest.Layers {
		open(t, blob(l), func(r io.Reader) {
			z, err := gzip.NewReader(r)
			if err != nil {
				t.Fatal(err)
			}
			unpack(t, z, i.root)
		})
	}
	return i
}

func open(t *testing.T, name string, read func(io.Reader)) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read(f)
}

func parse(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// unpack writes a tar's files to a folder.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return
		}
		name := ""
		if err == nil {
			name = filepath.Join(dir, h.Name)
			switch {
			case !filepath.IsLocal(h.Name):
				err = fmt.Errorf("%s is outside", h.Name)
			case h.Typeflag == tar.TypeDir:
				err = os.MkdirAll(name, os.FileMode(h.Mode))
			default:
				err = write(name, archive, os.FileMode(h.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func write(name string, r io.Reader, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	return err
}

// files lists the files of the image.
func (i image) files(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(i.root, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(name, i.root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
