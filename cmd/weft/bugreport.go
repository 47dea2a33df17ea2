package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/bugreport"
	"weft/internal/config"
)

// bugreportFlags are those of weft bugreport.
type bugreportFlags struct {
	out, socket string
	configs     []string
	defaults    bool // configs are weft's own
}

func newBugreportCmd() *cobra.Command {
	var f bugreportFlags
	cmd := &cobra.Command{
		Use:   "bugreport",
		Short: "Pack what a maintainer needs to find a fault into one archive",
		Long: `Bugreport writes one .tar.gz: versions, the status of the weft host or weft switch that runs
here, what it blames, its metrics and goroutines, counts of connections, the configuration, its
topology, the last messages, and what the kernel has of addresses, routes, rules, firewall, queues,
programs and settings. Nothing is changed, and nothing is sent anywhere.

Keys, passwords and tokens are taken out. Addresses and names of hosts stay: look through it before
you pass it on. Each part is bounded. One that cannot be had says why in its place, so run it as
root for all of it.`,
		Example: "  weft bugreport\n  weft bugreport -o /tmp/report.tar.gz --config /etc/weft/host.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "new `file` to write (default weft-bugreport-HOST-TIME.tar.gz here)")
	flags.StringVar(&f.socket, "socket", "", "the daemon's `socket` (default that of this network namespace)")
	flags.StringArrayVar(&f.configs, "config", []string{defaultHostConfig, defaultSwitchConfig}, "a configuration `file`; may be repeated")
	return cmd
}

// archiveEnds is how the file's name must end, so that who gets it knows what it is.
const archiveEnds = ".tar.gz"

// run writes the archive.
func (f bugreportFlags) run(cmd *cobra.Command) (err error) {
	now := time.Now().Truncate(time.Second)
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	dir := fmt.Sprintf("weft-bugreport-%s-%s", strings.ReplaceAll(host, "/", "-"), now.UTC().Format("20060102-150405"))
	f.defaults = !cmd.Flags().Changed("config")
	if f.out == "" {
		f.out = dir + archiveEnds
	}
	if !strings.HasSuffix(f.out, archiveEnds) {
		return usagef("--output=%s: must end in %s, which it is", f.out, archiveEnds)
	}
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usagef("--output=%s: the file is there already; name another one, or remove it", f.out)
	case err != nil:
		return cannotWrite("output", f.out, err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(fmt.Errorf("--output=%s: %w", f.out, err), os.Remove(f.out))
		}
	}()
	var secrets config.Redactor
	for _, env := range os.Environ() {
		if name, value, _ := strings.Cut(env, "="); config.IsSecret(name) {
			secrets.Note(value)
		}
	}
	for _, name := range f.configs {
		if text, err := config.ReadInput(name, config.MaxBytes); err == nil {
			secrets.Learn(text)
		}
	}
	a := bugreport.New(file, dir, now, secrets.Text)
	for _, p := range f.parts() {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		text, failed := p.get(cmd.Context())
		if err := a.Add(p.name, text, failed); err != nil {
			return err
		}
	}
	if err := a.Close("A report of " + dir + " by weft bugreport.\nKeys, passwords and tokens are taken out. Addresses and names of hosts are in it."); err != nil {
		return err
	}
	tellBugreport(cmd, f.out, a.Parts)
	return nil
}

// tellBugreport says what was written, and what could not be had.
func tellBugreport(cmd *cobra.Command, file string, parts []bugreport.Part) {
	w, failed := cmd.OutOrStdout(), 0
	for _, p := range parts {
		if p.Err != nil {
			failed++
		}
	}
	size := int64(0)
	if i, err := os.Stat(file); err == nil {
		size = i.Size()
	}
	if full, err := filepath.Abs(file); err == nil {
		file = full
	}
	fmt.Fprintf(w, "wrote %s: %d parts, %d KB\n", file, len(parts), (size+999)/1000)
	if failed > 0 {
		fmt.Fprintf(w, "%d parts could not be had, or not as a whole; README.txt in it says why\n", failed)
	}
	fmt.Fprintln(w, "Keys, passwords and tokens are taken out. Addresses and names of hosts are in it: look through it before you pass it on.")
}

// partTime bounds how long one part is waited for.
const partTime = 15 * time.Second

// reportPart is one file of the archive. get returns what it could get, and what kept it from
// getting the rest.
type reportPart struct {
	name string
	get  func(context.Context) ([]byte, error)
}

// parts lists what goes into the archive.
func (f bugreportFlags) parts() []reportPart {
	list := []reportPart{
		{"version.json", command("version", "--json")},
		{"status.json", command("status", "--json", "--socket", f.socket)},
		{"status-screen.txt", command("status", "--socket", f.socket)},
		{"blame.json", command("blame", "--json", "--socket", f.socket)},
		{"doctor.json", command("doctor", "--json")},
		{"connections.json", f.connections},
		{"metrics.txt", f.ask("/metrics")},
		{"goroutines.txt", f.ask("/debug/pprof/goroutine?debug=2")},
		{"heap.txt", f.ask("/debug/pprof/heap?debug=1")},
	}
	list = append(list, f.configurations()...)
	return append(list, systemParts()...)
}
