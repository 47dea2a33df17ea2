package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// fake is a program as readProgram returns it.
func fake(arch string) program {
	text := []byte("a program for " + arch)
	return program{arch, text, sha256.Sum256(text), &buildinfo.BuildInfo{Path: "weft/cmd/weft", Main: debug.Module{Path: "weft", Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2027-01-02T03:04:05Z"}, {Key: "vcs.revision", Value: "0123456789abcdef"}}}}
}

// written is the archive of a fake image.
func written(t *testing.T, arches ...string) (file string) {
	t.Helper()
	var all []program
	for _, a := range arches {
		all = append(all, fake(a))
	}
	index, err := indexOf(all)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "weft.tar")
	if err := writeArchive(file, index); err != nil {
		t.Fatal(err)
	}
	return file
}

// The same programs make the same archive, another time and in another folder.
func TestArchive_sameBytes(t *testing.T) {
	a, err := os.ReadFile(written(t, "amd64", "arm64"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(written(t, "amd64", "arm64"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("two archives differ")
	}
}

// As an OCI layout, as a tar of docker save, and from a registry it is the same image, in order
// by the rules of each.
func TestArchive_loads(t *testing.T) {
	file := written(t, "amd64", "arm64")
	dir := t.TempDir()
	untar(t, file, dir)
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		m, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if p := m.Manifests[i].Platform; p == nil || p.OS != "linux" || p.Architecture != arch {
			t.Errorf("manifest %d is for %v", i, p)
		}
		image, err := index.Image(m.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, arch)
	}

	saved, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(saved); err != nil {
		t.Error(err)
	}
	checkImage(t, saved, "amd64")

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team/weft:v1"
	var said bytes.Buffer
	if err := push(to, index, &said); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(strings.TrimSpace(said.String()))
	if err != nil {
		t.Fatalf("%q: %v", &said, err)
	}
	pulled, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	checkImage(t, pulled, "arm64")
}

// checkImage compares an image with the program that it was made of.
func checkImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Architecture != arch || c.OS != "linux" || !c.Created.Equal(fake(arch).time()) || !slices.Equal(c.Config.Entrypoint, []string{"/usr/local/bin/weft"}) ||
		c.Config.Labels["org.opencontainers.image.revision"] != "0123456789abcdef" {
		t.Errorf("%s: %+v", arch, c)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := fake(arch).tree()
	archive := tar.NewReader(r)
	for i := 0; ; i++ {
		h, err := archive.Next()
		if err == io.EOF && i == len(want) {
			return
		}
		if err != nil || i == len(want) {
			t.Fatalf("file %d: %v", i, err)
		}
		text, err := io.ReadAll(archive)
		if err != nil || strings.TrimSuffix(h.Name, "/") != want[i].name || !bytes.Equal(text, want[i].text) || h.Mode != want[i].mode || h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(fake(arch).time()) {
			t.Errorf("%s: %+v, %v", h.Name, h, err)
		}
	}
}

func untar(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, text, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The Dockerfile copies what -root writes, and runs it as the archive's image does.
func TestDockerfile_sameImage(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, final, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok {
		t.Fatal("its last stage is not from scratch")
	}
	var got []string
	for line := range strings.Lines(final) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			got = append(got, line)
		}
	}
	c := fake("amd64").config()
	quoted := func(s []string) string { return `["` + strings.Join(s, `", "`) + `"]` }
	want := []string{"COPY --from=build /image/ /", "ENV " + c.Env[0], "WORKDIR " + c.WorkingDir, "STOPSIGNAL " + c.StopSignal,
		"ENTRYPOINT " + quoted(c.Entrypoint), "CMD " + quoted(c.Cmd)}
	if !slices.Equal(got, want) {
		t.Errorf("it has\n%s\nwanted is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	dir := t.TempDir()
	if err := writeTree(dir, fake("amd64")); err != nil {
		t.Fatal(err)
	}
	for _, f := range fake("amd64").tree() {
		st, err := os.Stat(filepath.Join(dir, f.name))
		if err != nil || st.IsDir() != f.folder() || int64(st.Mode().Perm()) != f.mode {
			t.Errorf("%s: %v, %v", f.name, st, err)
		}
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(module)) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "go "); ok && !strings.Contains(string(text), "golang:"+version+" ") {
			t.Errorf("it does not build with Go %s, as go.mod has it", version)
		}
	}
}

// What cannot be an image is refused, with what to do.
func TestRun_errors(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := "arm64"
	if hostArch() == other {
		other = "amd64"
	}
	for args, want := range map[string]string{
		"":                                 "give -o, -push, -root or -sbom",
		"-o x -arch mips":                  `-arch: "mips"`,
		"-root x -arch amd64,arm64":        "-root: has files for one architecture",
		"-o x -binary y -arch amd64,arm64": "-binary: is for one architecture",
		"-o x y":                           `"y" is no flag`,
		"-o x -binary /nonexistent/weft":   "/nonexistent/weft",
		"-o x -binary image_test.go":       "is no program for Linux",
		"-o x -binary " + self:             "not of weft",
		"-o x -binary " + self + " -arch " + other: "is for ",
	} {
		if strings.Contains(args, self) && !isStatic(t, self) && !strings.Contains(args, other) {
			want = "needs shared libraries"
		}
		var out bytes.Buffer
		if err := run(strings.Fields(args), &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a file was written")
	}
}

// The guide's commands of this tool are understood.
func TestGuide_commands(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(page) + string(dockerfile)) {
		_, args, ok := strings.Cut(line, "go -C packaging/image run .")
		if !ok {
			continue
		}
		seen++
		args, _, _ = strings.Cut(args, " #")
		args = strings.NewReplacer(`"$TARGETARCH"`, "arm64").Replace(args)
		if _, err := parse(strings.Fields(args)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if seen < 5 {
		t.Errorf("only %d commands found", seen)
	}
	build := "CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags='-s -w -buildid=' -o weft ./cmd/weft\n"
	if !strings.Contains(string(page), build) || strings.Join(buildFlags, " ") != "-trimpath -buildvcs=auto -ldflags=-s -w -buildid=" {
		t.Errorf("the guide has not what the tool does: %q", buildFlags)
	}
}
