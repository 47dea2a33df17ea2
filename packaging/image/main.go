// Image builds weft for Linux and makes a container image of it, without Docker: a tar in which
// nothing but weft and the list of its users are. The same commit and the same Go give the same
// bytes, wherever it is built. Run it in this folder, which is a module of its own:
//
//	go run . -o weft.tar                            # load it: docker load, podman load, ctr images import
//	go run . -o weft.tar -arch amd64,arm64          # one image for both
//	go run . -push registry.example/weft:v1         # with the logins of docker login
//	go run . -o weft.tar -binary ../../weft         # of a binary that is there already
//	go run . -root DIR                              # the files alone, for the Dockerfile
//	go run . -sbom DIR                              # what is in it: CycloneDX, a file for each architecture
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "image:", err)
		}
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	source, archive, root, sbom, push, binary string
	arch                                      []string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.StringVar(&o.source, "src", "../..", "weft's `folder`, with its go.mod")
	f.StringVar(&o.archive, "o", "", "write the image to a `file`: a tar that is both an OCI layout and what docker save writes")
	f.StringVar(&o.root, "root", "", "write the files of the image to a `folder`, for one architecture")
	f.StringVar(&o.sbom, "sbom", "", "write a bill of materials (CycloneDX 1.6, JSON) for each architecture to a `folder`")
	f.StringVar(&o.push, "push", "", "push the image to a registry, by a `name` such as registry.example/weft:v1")
	f.StringVar(&o.binary, "binary", "", "take this `file` and build none")
	arch := f.String("arch", hostArch(), "the architectures, such as amd64,arm64")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.arch = strings.Split(*arch, ",")
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag; -h lists them", f.Arg(0))
	case o.archive == "" && o.root == "" && o.sbom == "" && o.push == "":
		return o, errors.New("nothing to make: give -o, -push, -root or -sbom")
	case o.root != "" && len(o.arch) > 1:
		return o, errors.New("-root: has files for one architecture; give -arch one")
	case o.binary != "" && len(o.arch) > 1:
		return o, errors.New("-binary: is for one architecture; give -arch one")
	}
	for _, a := range o.arch {
		if a != "amd64" && a != "arm64" {
			return o, fmt.Errorf("-arch: %q is neither amd64 nor arm64", a)
		}
	}
	return o, nil
}

func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "weft-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var all []program
	for _, arch := range o.arch {
		file := o.binary
		if file == "" {
			file = filepath.Join(tmp, "weft-"+arch)
			if err := build(o.source, file, arch); err != nil {
				return err
			}
		}
		p, err := readProgram(file, arch)
		if err != nil {
			return err
		}
		all = append(all, p)
		if o.sbom != "" {
			name := filepath.Join(o.sbom, "weft-linux-"+arch+".cdx.json")
			if err := writeSBOM(name, p); err != nil {
				return err
			}
			fmt.Fprintln(out, name)
		}
		if o.root != "" {
			if err := writeTree(o.root, p); err != nil {
				return err
			}
			fmt.Fprintln(out, o.root)
		}
	}
	if o.archive == "" && o.push == "" {
		return nil
	}
	index, err := indexOf(all)
	if err != nil {
		return err
	}
	if o.archive != "" {
		if err := writeArchive(o.archive, index); err != nil {
			return err
		}
		fmt.Fprintln(out, o.archive)
	}
	if o.push != "" {
		return push(o.push, index, out)
	}
	return nil
}
