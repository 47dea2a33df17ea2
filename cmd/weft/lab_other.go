//go:build !linux

package main

import (
	"github.com/spf13/cobra"
)

func newLabCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "lab",
		Short: "A Clos fabric in network namespaces (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return absentf("lab: needs the network namespaces of Linux; run it there or in a virtual machine")
		},
	}
}
