package daemon

import (
	"reflect"
	"slices"

	"weft/internal/strictyaml"
)

// reloadable are the keys that a running daemon can change.
var reloadable = []string{"topology", "policy", "flowcell_bytes", "flowlet_gap", "samples", "expiry", "receivers_resequence", "failures", "drain"}

// canBecome names a key that differs and cannot while the daemon runs.
func (c *Config) canBecome(next *Config) error {
	a, b := reflect.ValueOf(*c), reflect.ValueOf(*next)
	for i := range a.NumField() {
		key, _ := strictyaml.Tag(a.Type().Field(i))
		if key == "" || slices.Contains(reloadable, key) {
			continue
		}
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			return next.lines.Errorf(key, "cannot change while the daemon runs; restart it (systemctl restart weft-host)")
		}
	}
	return nil
}
