package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2/files"
)

// tree is what a package installs, partly files of the repository, partly files made for it.
type tree struct {
	root       string // of the repository
	dir        string // for files that are made
	source     source
	maintainer string
	files      []installed
}

// installed is a file of the package.
type installed struct {
	path   string // where it is installed
	from   string // where its content is now
	mode   os.FileMode
	config bool   // the operator's once it is installed
	only   string // "": in packages of all formats
}

// make lists all files, and makes those that the repository does not have.
func (t *tree) make(ctx context.Context, binary, describe string) error {
	t.files = append(t.files, installed{path: "/usr/bin/weft", from: binary, mode: 0o755})
	for _, step := range []func(context.Context, string) error{t.units, t.configurations, t.manual, t.completions, t.documents, t.licenses, t.forDebian} {
		if err := step(ctx, describe); err != nil {
			return err
		}
	}
	return nil
}

// add installs a file of the repository.
func (t *tree) add(to, from string) {
	t.files = append(t.files, installed{path: to, from: filepath.Join(t.root, from), mode: 0o644})
}

// write makes a file to be installed.
func (t *tree) write(to string, content []byte) error {
	from := filepath.Join(t.dir, strings.ReplaceAll(to, "/", "_"))
	t.files = append(t.files, installed{path: to, from: from, mode: 0o644})
	return os.WriteFile(from, content, 0o644)
}

// compressed is write with gzip, as Debian wants manuals and long texts.
func (t *tree) compressed(to string, content []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return t.write(to+".gz", b.Bytes())
}

// units are the repository's, which start what an operator has installed by hand.
func (t *tree) units(context.Context, string) error {
	const byHand, packaged = "/usr/local/bin/weft", "/usr/bin/weft"
	names, err := filepath.Glob(filepath.Join(t.root, "packaging", "*.service"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("no units in %s/packaging: is --root the repository? (%v)", t.root, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.Contains(b, []byte(byHand)) {
			return fmt.Errorf("%s does not start %s", name, byHand)
		}
		if err := t.write("/usr/lib/systemd/system/"+filepath.Base(name), bytes.ReplaceAll(b, []byte(byHand), []byte(packaged))); err != nil {
			return err
		}
	}
	t.add("/usr/lib/sysusers.d/weft.conf", "packaging/weft.sysusers")
	return nil
}

// configurations are short: each has what an operator must say. All keys, with their
// defaults, are among the examples. So the files seldom change from version to version, and
// an upgrade has nothing to ask.
func (t *tree) configurations(context.Context, string) error {
	for _, daemon := range []string{"host", "switch", "scheduler"} {
		t.add("/etc/weft/"+daemon+".yaml", "packaging/etc/"+daemon+".yaml")
		t.files[len(t.files)-1].config = true
		t.add("/usr/share/doc/weft/examples/"+daemon+".yaml", "packaging/"+daemon+".yaml")
	}
	return nil
}

// completions are scripts that ask weft itself for the values.
func (t *tree) completions(ctx context.Context, describe string) error {
	for _, c := range []struct{ shell, path, only string }{
		{"bash", "/usr/share/bash-completion/completions/weft", ""},
		{"fish", "/usr/share/fish/vendor_completions.d/weft.fish", ""},
		{"zsh", "/usr/share/zsh/vendor-completions/_weft", "deb"},
		{"zsh", "/usr/share/zsh/site-functions/_weft", "rpm"},
	} {
		script, err := exec.CommandContext(ctx, describe, "completion", c.shell).Output()
		if err != nil {
			return fmt.Errorf("%s completion %s: %w", describe, c.shell, err)
		}
		if err := t.write(c.path, script); err != nil {
			return err
		}
		t.files[len(t.files)-1].only = c.only
	}
	return nil
}

func (t *tree) documents(context.Context, string) error {
	const docs = "/usr/share/doc/weft/"
	for _, pattern := range []string{"README.md", "SECURITY.md", "docs/*.md"} {
		names, err := filepath.Glob(filepath.Join(t.root, pattern))
		if err != nil || len(names) == 0 {
			return fmt.Errorf("%s: not found (%v)", pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if err := t.compressed(docs+filepath.Base(name), b); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"alerts.yml", "dashboard.json"} {
		t.add(docs+"examples/prometheus/"+name, "packaging/prometheus/"+name)
	}
	const dissector = "packaging/wireshark/weft.lua"
	if _, err := os.Stat(filepath.Join(t.root, dissector)); err == nil {
		t.add("/usr/share/weft/wireshark/weft.lua", dissector)
	}
	changes, err := os.ReadFile(filepath.Join(t.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	return t.compressed(docs+"NEWS.md", changes)
}

// contents is the tree as nfpm has it.
func (t *tree) contents(format string) (all files.Contents, err error) {
	for _, f := range t.files {
		if f.only != "" && f.only != format {
			continue
		}
		c := &files.Content{Source: f.from, Destination: f.path, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: t.source.time}}
		switch {
		case f.config:
			c.Type = files.TypeConfigNoReplace
		case format == "rpm" && strings.HasPrefix(f.path, "/usr/share/doc/"):
			c.Type = files.TypeRPMDoc
		}
		all = append(all, c)
	}
	for _, dir := range []string{"/etc/weft"} {
		all = append(all, &files.Content{Destination: dir, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.ModeDir | 0o755, MTime: t.source.time}})
	}
	return all, nil
}
