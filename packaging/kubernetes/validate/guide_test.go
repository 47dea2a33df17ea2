package validate

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const top = "../../.."

// guideLines are the commands of docs/kubernetes.md, without comments.
func guideLines(t testing.TB) (lines []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(top, "docs", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, " #")
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	for _, m := range regexp.MustCompile("`(kubectl [^`]*)`").FindAllStringSubmatch(string(page), -1) {
		lines = append(lines, m[1])
	}
	return lines
}

// guideExecs are the commands that the guide has run in the container of the daemon.
func guideExecs(t testing.TB) (all [][]string) {
	t.Helper()
	for _, line := range guideLines(t) {
		if before, argv, ok := strings.Cut(line, " -- "); ok && strings.HasPrefix(before, "kubectl ") {
			all = append(all, strings.Fields(argv))
		}
	}
	if len(all) < 2 {
		t.Fatalf("the guide has %v run", all)
	}
	return all
}

// What the guide's kubectl commands name is there. TestContainer_sprays runs what they have run in
// the container; tests of cmd/weft and packaging/image see to the other commands.
func TestGuide_namesWhatThereIs(t *testing.T) {
	d := deployed(t)
	seen := 0
	for _, line := range guideLines(t) {
		line, _, _ = strings.Cut(line, " -- ")
		words := strings.Fields(line)
		if words[0] != "kubectl" {
			continue
		}
		seen++
		if i := slices.Index(words, "-k"); i >= 0 {
			if _, err := os.Stat(filepath.Join(top, words[i+1], "kustomization.yaml")); err != nil || !slices.Contains([]string{"apply", "delete"}, words[1]) {
				t.Errorf("%s: %v", line, err)
			}
			continue
		}
		if words[1] != "-n" || words[2] != d.namespace.Name {
			t.Errorf("%s: the namespace is %s", line, d.namespace.Name)
		}
		for i, word := range words {
			if name, ok := strings.CutPrefix(word, "daemonset/"); ok && name != d.daemons.Name {
				t.Errorf("%s: the DaemonSet is called %s", line, d.daemons.Name)
			}
			if word == "-c" && words[i+1] != pod(d).Containers[0].Name {
				t.Errorf("%s: the container is called %s", line, pod(d).Containers[0].Name)
			}
			if word == "generic" && words[i+1] != pod(d).Volumes[0].Projected.Sources[1].Secret.Name {
				t.Errorf("%s: the manifest has no such secret", line)
			}
		}
	}
	if seen < 7 {
		t.Errorf("only %d commands found", seen)
	}
}

// The guide's table of capabilities is the manifest's.
func TestGuide_listsTheCapabilities(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, "docs", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(host|cleanup)` \\| ([A-Z_]+) \\|").FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	p := pod(deployed(t))
	for _, c := range append(p.Containers, p.InitContainers...) {
		for _, name := range c.SecurityContext.Capabilities.Add {
			want = append(want, c.Name+" "+string(name))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the guide has %q, the manifest %q", got, want)
	}
}
