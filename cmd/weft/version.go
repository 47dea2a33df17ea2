package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what this binary was built from, as the go command has noted it.
type version struct {
	Module   string `json:"module"`             // path
	Version  string `json:"version"`            // "(devel)" when built in a checkout without a tag
	Revision string `json:"revision,omitempty"` // commit
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernel   string `json:"kernel,omitempty"` // which runs here, as uname -sr has it
}

func newVersionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say what this binary was built from, and which kernel runs here",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				return fmt.Errorf("version: this binary has no build information: build it with go build, in module mode")
			}
			v := versionOf(info)
			v.Kernel = kernelRelease()
			if asJSON {
				return printJSON(cmd.OutOrStdout(), v)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object instead of a line")
	return cmd
}

func versionOf(info *debug.BuildInfo) version {
	settings := make(map[string]string, len(info.Settings))
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return version{
		Module: info.Main.Path, Version: info.Main.Version, Go: info.GoVersion,
		Revision: settings["vcs.revision"], Time: settings["vcs.time"], Modified: settings["vcs.modified"] == "true",
		Platform: settings["GOOS"] + "/" + settings["GOARCH"],
	}
}

func (v version) String() string {
	s := "weft " + v.Version
	if v.Revision != "" {
		s += fmt.Sprintf(", commit %.12s of %s", v.Revision, v.Time)
	}
	if v.Modified {
		s += ", with changes"
	}
	s = fmt.Sprintf("%s, %s, %s", s, v.Go, v.Platform)
	if v.Kernel != "" {
		s += ", on " + v.Kernel
	}
	return s
}
