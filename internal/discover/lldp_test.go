package discover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/topology/graph"
)

// lldpTexts reads the files of the directory, which are as lldpd 1.0 writes them.
func lldpTexts(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/lldp/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	texts := make(map[string][]byte)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(file), ".json")] = text
	}
	return texts
}

// A cable that both ends see is one. A node that has no file is known by its neighbours.
func TestLLDP_golden(t *testing.T) {
	f, err := LLDP(lldpTexts(t))
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f.Spec)
	if err != nil {
		t.Fatal(err)
	}
	got := "# " + strings.Join(f.Guesses, "\n# ") + "\n" + string(g.Text())
	want, err := os.ReadFile("testdata/lldp/golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestLLDP_errors(t *testing.T) {
	for text, want := range map[string]string{"": "lldp: leaf1: is not JSON", "{}": "lldp: leaf1: no key lldp", `{"lldp": {"interface": 3}}`: "lldp: leaf1: is not JSON"} {
		if _, err := LLDP(map[string][]byte{"leaf1": []byte(text)}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "lldpcli -f json show neighbors") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzLLDP(f *testing.F) {
	for _, text := range lldpTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := LLDP(map[string][]byte{"leaf1": text})
		if err != nil {
			return
		}
		if g, err := graph.New(found.Spec); err == nil {
			if _, err := graph.Parse(g.Text()); err != nil {
				t.Fatalf("%v\n%s", err, g.Text())
			}
		}
	})
}
