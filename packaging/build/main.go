// Command build makes the packages of weft: .deb and .rpm, with the same bytes each time.
//
//	go run -C packaging/build . --out /tmp/packages
//
// It is a module of its own, so that what makes packages burdens nobody who imports weft.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// options say what is built, and how.
type options struct {
	root       string   // of the repository
	out        string   // directory of the packages
	formats    []string // deb, rpm
	arch       string   // as GOARCH has it
	version    string   // "": of the commit
	maintainer string
	compress   string // gzip, xz or zstd
	binary     string // "": is built
	describe   string // "": is built, or binary
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := options{root: filepath.Join("..", "..")}
	f := flag.NewFlagSet("build", flag.ContinueOnError)
	f.StringVar(&o.root, "root", o.root, "`directory` of the repository")
	f.StringVar(&o.out, "out", "", "`directory` for the packages (required)")
	formats := f.String("formats", "deb,rpm", "kinds of packages, with commas between")
	f.StringVar(&o.arch, "arch", runtime.GOARCH, "processor, as GOARCH has it")
	f.StringVar(&o.version, "version", "", "of the package (default: of the commit)")
	f.StringVar(&o.maintainer, "maintainer", "weft maintainers <maintainers@weft.invalid>", "`NAME <ADDRESS>` of who answers for the packages")
	f.StringVar(&o.compress, "compression", "xz", "`method` of compression: gzip, xz (the smallest, and the slowest to make) or zstd")
	f.StringVar(&o.binary, "binary", "", "`file` to package in place of one that is built of the tree")
	f.StringVar(&o.describe, "describe", "", "weft for this machine, whose commands the man pages and completions are of (default: as --binary)")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("%q: there are no arguments but flags; see --help", f.Arg(0))
	case o.compress != "gzip" && o.compress != "xz" && o.compress != "zstd":
		return fmt.Errorf("--compression: %q is none of them; give gzip, xz or zstd", o.compress)
	case o.out == "":
		return fmt.Errorf("--out is missing: give the directory for the packages")
	}
	for format := range strings.SplitSeq(*formats, ",") {
		if format != "deb" && format != "rpm" {
			return fmt.Errorf("--formats: %q is no kind of package; give deb or rpm, or both", format)
		}
		o.formats = append(o.formats, format)
	}
	made, err := o.build(ctx)
	for _, path := range made {
		fmt.Println(path)
	}
	return err
}
