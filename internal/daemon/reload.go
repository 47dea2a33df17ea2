package daemon

import (
	"reflect"
	"slices"
)

// reloadable are the keys that a running daemon can change.
var reloadable = []string{"topology", "policy", "flowcell_bytes", "flowlet_gap", "receivers_resequence", "drain"}

// canBecome names a key that differs and cannot while the daemon runs.
func (c *Config) canBecome(next *Config) error {
	a, b := reflect.ValueOf(*c), reflect.ValueOf(*next)
	for i := range a.NumField() {
		key, _ := tag(a.Type().Field(i))
		if key == "" || slices.Contains(reloadable, key) {
			continue
		}
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			return next.lines.errorf(key, "cannot change while the daemon runs; restart it (systemctl restart weft-host)")
		}
	}
	return nil
}
