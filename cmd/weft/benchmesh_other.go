//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newBenchMeshCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "mesh",
		Short: "How fast hosts of a mesh act on each other's news (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("bench mesh: starts programs as Linux does; run it there or in a virtual machine")
		},
	}
}
