//go:build !linux

package main

import (
	"github.com/spf13/cobra"
)

func newBenchPermutationCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "permutation",
		Short: "The kernels' TCP in a permutation, by weft host (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return absentf("bench permutation: needs the network namespaces of Linux; run it there or in a virtual machine")
		},
	}
}
