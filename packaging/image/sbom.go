package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the bill of materials of a binary.
func writeSBOM(name string, p program) error {
	var b bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bill(p), cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("bill of materials: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// bill lists what a binary was built of, as the go command has noted it in the binary: the
// modules with their hashes, the commit, and Go itself. The same binary has the same bill.
func bill(p program) *cdx.BOM {
	b := cdx.NewBOM()
	b.SerialNumber = serialNumber(p.digest)
	main := cdx.Component{
		BOMRef: "weft", Type: cdx.ComponentTypeApplication, Name: "weft", Version: p.version(),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(p.digest[:])}},
	}
	var properties []cdx.Property
	for _, s := range p.info.Settings {
		properties = append(properties, cdx.Property{Name: "cdx:gomod:build:env:" + s.Key, Value: s.Value})
	}
	main.Properties = &properties
	b.Metadata = &cdx.Metadata{Timestamp: p.time().Format(time.RFC3339), Component: &main}
	components := []cdx.Component{goItself(p.info.GoVersion)}
	needs := []string{components[0].BOMRef}
	for _, m := range p.info.Deps {
		c := module(m)
		components = append(components, c)
		needs = append(needs, c.BOMRef)
	}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return b
}

func goItself(version string) cdx.Component {
	version = strings.TrimPrefix(version, "go")
	return cdx.Component{BOMRef: "pkg:golang/std@" + version, Type: cdx.ComponentTypeLibrary, Name: "std", Version: version,
		Scope: cdx.ScopeRequired, PackageURL: "pkg:golang/std@" + version}
}

// module is one that was linked. Where another took its place, it is that one; a folder, which
// has no version, is part of weft's source, and goes by the name that it took.
func module(m *debug.Module) cdx.Component {
	switch r := m.Replace; {
	case r != nil && r.Version != "":
		m = r
	case r != nil:
		m = &debug.Module{Path: m.Path, Version: m.Version}
	}
	ref := "pkg:golang/" + m.Path
	if m.Version != "" {
		ref += "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	}
	c := cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Scope: cdx.ScopeRequired, PackageURL: ref}
	// h1: is the SHA-256 of a list of the module's files and their hashes (golang.org/x/mod/sumdb/dirhash).
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}

// serialNumber is a UUID of version 8 (RFC 9562) that the binary's digest determines.
func serialNumber(digest [sha256.Size]byte) string {
	u := digest[:16]
	u = append([]byte(nil), u...)
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
