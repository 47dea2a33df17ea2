//go:build !linux

package main

import (
	"github.com/spf13/cobra"
)

func newBenchPatternsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "patterns",
		Short: "The thesis' Tables 3.1 and 4.3 by kernels: ECMP, tables, classifier, Hedera's schedulers, weft host (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return absentf("bench patterns: needs the network namespaces of Linux; run it there or in a virtual machine")
		},
	}
}
