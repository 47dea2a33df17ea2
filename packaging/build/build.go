package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// build makes the packages and returns their paths.
func (o *options) build(ctx context.Context) (made []string, err error) {
	s, err := o.source(ctx)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "weft-package-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	binary, describe := o.binary, o.describe
	if binary == "" {
		binary = filepath.Join(work, "weft")
		if err := o.compile(ctx, s, binary, o.arch); err != nil {
			return nil, err
		}
	}
	switch {
	case describe != "":
	case o.arch == runtime.GOARCH:
		describe = binary
	default: // what another processor runs cannot tell of its commands here
		describe = filepath.Join(work, "native")
		if err := o.compile(ctx, s, describe, runtime.GOARCH); err != nil {
			return nil, err
		}
	}
	t := tree{root: o.root, dir: work, source: s, maintainer: o.maintainer}
	if err := t.make(ctx, binary, describe); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return nil, err
	}
	for _, format := range o.formats {
		path, err := o.pack(&t, format)
		if err != nil {
			return made, fmt.Errorf("%s: %w", format, err)
		}
		made = append(made, path)
	}
	return made, nil
}

// pack writes a package of what is in the tree.
func (o *options) pack(t *tree, format string) (path string, err error) {
	contents, err := t.contents(format)
	if err != nil {
		return "", err
	}
	scripts := func(name string) string { return filepath.Join(o.root, "packaging", "scripts", name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "weft", Arch: o.arch, Platform: "linux", Version: t.source.version, VersionSchema: "none",
		Maintainer: o.maintainer, Section: "net", Priority: "optional", MTime: t.source.time,
		Description: "TCP connections over all paths of a Clos fabric\n" +
			"weft sprays the packets of a TCP connection over all paths of a data-centre\n" +
			"network, puts them in order where they arrive, and leaves paths that fail.\n" +
			"Programs and the kernel's sockets stay as they are. The package has the\n" +
			"daemons of hosts, switches and schedulers, a lab of network namespaces,\n" +
			"benchmarks and a simulator. No daemon begins before it is configured.",
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PostInstall: scripts("postinstall"), PreRemove: scripts("preremove"), PostRemove: scripts("postremove")},
			Deb:      nfpm.Deb{Compression: o.compress},
			RPM:      nfpm.RPM{Compression: o.compress, BuildHost: "reproducible", Group: "Applications/Internet", Summary: "TCP connections over all paths of a Clos fabric"},
		},
	})
	if format == "deb" {
		info.Overridables.Depends = []string{"passwd"}
		info.Overridables.Recommends = []string{"iproute2"}
		info.Overridables.Suggests = []string{"frr", "prometheus", "wireshark"}
	} else {
		info.License = "Apache-2.0" // Debian has it in the file copyright
		info.Overridables.Depends = []string{"shadow-utils", "util-linux"}
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	path = filepath.Join(o.out, packager.ConventionalFileName(info))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := packager.Package(info, f); err != nil {
		f.Close()
		os.Remove(path)
		return "", err
	}
	return path, f.Close()
}
