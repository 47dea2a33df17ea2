package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name string         `yaml:"name"`
	On   []netip.Prefix `yaml:"on"`
}

type outer struct {
	Count  int           `yaml:"count"`
	Part   float64       `yaml:"part"`
	Wait   time.Duration `yaml:"wait"`
	Flag   bool          `yaml:"flag"`
	Device string        `yaml:"device,auto"`
	Inner  inner         `yaml:"inner"`
	List   []inner       `yaml:"list"`
	hidden int
}

func TestDecode_setsWhatIsThere(t *testing.T) {
	v := outer{Count: 7, Device: "eth0", hidden: 3}
	_, err := Decode([]byte("part: 0.5\nwait: 20ms\ndevice: auto\ninner: {name: x, on: [10.0.0.0/8]}\nlist:\n- name: y\n"), "f", &v)
	want := outer{Count: 7, Part: 0.5, Wait: 20 * time.Millisecond, hidden: 3,
		Inner: inner{"x", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, List: []inner{{Name: "y"}}}
	if err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("%+v, %v; want %+v", v, err, want)
	}
}

func TestDecode_errorsNameKeyAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"\ncount: many":               "f:2: count: \"many\" is not a whole number",
		"part: half":                  "f:1: part: \"half\" is not a number",
		"wait: 20":                    "f:1: wait: \"20\" is not a time",
		"flag: maybe":                 "f:1: flag: \"maybe\" is neither",
		"inner:\n  nam: x":            "f:2: inner.nam: unknown key; did you mean name?",
		"list:\n- name: x\n- on: [y]": "f:3: list[1].on[0]: \"y\" is not a prefix",
		"count: 1\ncount: 2":          "f:2: count: given twice",
		"count: &a 1":                 "f:1: count: anchors",
		"count: 1\n---\ncount: 2":     "f:2: a second document",
		"- count":                     "f:1: the file has a list",
		"count: [1":                   "f:1: not YAML",
	} {
		_, err := Decode([]byte(text), "f", new(outer))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
