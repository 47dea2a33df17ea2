package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// forDebian makes what Debian's policy wants of each package.
func (t *tree) forDebian(context.Context, string) error {
	license, err := os.ReadFile(filepath.Join(t.root, "packaging", "copyright"))
	if err != nil {
		return err
	}
	const docs = "/usr/share/doc/weft/"
	if err := t.write(docs+"copyright", license); err != nil {
		return err
	}
	before := len(t.files)
	if err := t.compressed(docs+"changelog", []byte(t.changelog())); err != nil {
		return err
	}
	if err := t.write("/usr/share/lintian/overrides/weft", []byte(overrides)); err != nil {
		return err
	}
	for i := range t.files[before:] {
		t.files[before+i].only = "deb"
	}
	t.add(docs+"LICENSE", "LICENSE")
	t.files[len(t.files)-1].only = "rpm"
	return nil
}

// changelog has one entry, of what is built. What has changed for users is in NEWS.md.
func (t *tree) changelog() string {
	changes := []string{"Changes that users notice: /usr/share/doc/weft/NEWS.md.gz."}
	if t.source.commit != "" {
		changes = append(changes, "Built from commit "+t.source.commit+".")
	}
	return fmt.Sprintf("weft (%s) unstable; urgency=medium\n\n  * %s\n\n -- %s  %s\n",
		t.source.version, strings.Join(changes, "\n  * "), t.maintainer, t.source.time.Format(time.RFC1123Z))
}

// overrides are findings of lintian that are so on purpose.
const overrides = `# Go programs are linked statically: one binary runs on every distribution.
weft: statically-linked-binary
# The scripts serve RPM, too; on Debian daemons are restarted by deb-systemd-invoke.
weft: maintainer-script-calls-systemctl *
`
