package config

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Of a tab a message speaks only where one indents a line, not where one stands in a value.
func TestInFile_speaksOfTabsThatIndent(t *testing.T) {
	for text, tab := range map[string]bool{
		"a: 1\n\tb: 2\n":                    true,
		"  \ta: 1\n":                        true,
		"name: \tx\nb: [1, 2\nc: 3\n":       false,
		"name: x\ty\nb: [1, 2\nc: 3\n":      false,
		"url: \"a: \tb\"\nb: [1, 2\nc: 3\n": false,
	} {
		var v any
		err := yaml.Unmarshal([]byte(text), &v)
		if err == nil {
			t.Errorf("%q is YAML", text)
			continue
		}
		if got := InFile("f.yaml", []byte(text), err).Error(); strings.Contains(got, "a tab indents") != tab {
			t.Errorf("%q: %s", text, got)
		}
	}
}
