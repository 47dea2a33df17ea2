package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema compiles the schema of CycloneDX 1.6, which refers to two others.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6", "spdx", "jsf-0.82"} {
		f, err := os.Open(filepath.Join("testdata", "cyclonedx", name+".schema.json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jsonschema.UnmarshalJSON(z)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+name+".SNAPSHOT.schema.json", text); err != nil {
			t.Fatal(err)
		}
	}
	s, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.SNAPSHOT.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The bill of a real build is one by the schema, and has each module that was linked, once.
func TestSBOM_bySchema(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Fatal("this test binary does not say what it was built of")
	}
	p := fake("amd64")
	p.info.Deps, p.info.GoVersion = info.Deps, info.GoVersion
	p.info.Deps = append(p.info.Deps, &debug.Module{Path: "example.org/forked", Version: "v1.0.0", Replace: &debug.Module{Path: "../forked"}},
		&debug.Module{Path: "example.org/moved", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0+incompatible"}})
	file := filepath.Join(t.TempDir(), "folder", "weft.cdx.json")
	if err := writeSBOM(file, p); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	if err := s.Validate(value); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	value.(map[string]any)["serialNumber"] = "7"
	if s.Validate(value) == nil {
		t.Error("the schema accepts anything")
	}
	var b cdx.BOM
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	has := make(map[string]string)
	for _, c := range *b.Components {
		if _, twice := has[c.PackageURL]; twice {
			t.Errorf("%s is listed twice", c.PackageURL)
		}
		has[c.PackageURL] = ""
		if c.Hashes != nil {
			has[c.PackageURL] = (*c.Hashes)[0].Value
		}
	}
	for _, m := range info.Deps {
		if sum := has["pkg:golang/"+m.Path+"@"+strings.ReplaceAll(m.Version, "+", "%2B")]; sum == "" {
			t.Errorf("%s %s is missing, or has no hash", m.Path, m.Version)
		}
	}
	for _, want := range []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"), "pkg:golang/example.org/forked@v1.0.0", "pkg:golang/example.org/new@v2.0.0%2Bincompatible"} {
		if _, ok := has[want]; !ok {
			t.Errorf("%s is missing", want)
		}
	}
	if n := len(*(*b.Dependencies)[0].Dependencies); n != len(has) || len(has) != len(info.Deps)+3 {
		t.Errorf("%d dependencies, %d components, %d modules", n, len(has), len(info.Deps))
	}
}
