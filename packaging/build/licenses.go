package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// licenses is the text of what the licences of linked modules want to be given along with a
// binary.
func (t *tree) licenses(ctx context.Context, _ string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/weft")
	cmd.Dir, cmd.Env = t.root, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	goIs := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOROOT")
	goIs.Dir = t.root
	goVersion, err := goIs.Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	modules := []string{"Go " + strings.Join(strings.Fields(string(goVersion)), " ")}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !seen[line] {
			seen[line] = true
			modules = append(modules, line)
		}
	}
	var b bytes.Buffer
	for _, m := range modules {
		name, dir := m[:strings.LastIndex(m, " ")], m[strings.LastIndex(m, " ")+1:]
		texts, err := licenseFiles(dir)
		if err != nil {
			return err
		}
		if len(texts) == 0 {
			return fmt.Errorf("%s: no licence in %s", name, dir)
		}
		for _, text := range texts {
			content, err := os.ReadFile(filepath.Join(dir, text))
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "==== %s: %s\n\n%s\n", name, text, content)
		}
	}
	return t.compressed("/usr/share/doc/weft/third-party-licenses", b.Bytes())
}

// licenseFiles returns the names of the files in a module's directory that state its licence.
func licenseFiles(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		for _, word := range []string{"license", "licence", "notice", "copying"} {
			if e.Type().IsRegular() && strings.HasPrefix(name, word) && !strings.HasSuffix(name, ".go") {
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}
