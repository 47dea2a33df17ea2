//go:build !linux

package main

import (
	"github.com/spf13/cobra"
)

func newBenchMPICmd() *cobra.Command {
	return &cobra.Command{
		Use:   "mpi",
		Short: "How long OpenMPI's collectives take, by who spreads packets (Linux only)",
		RunE: func(*cobra.Command, []string) error {
			return absentf("bench mpi: needs the network namespaces of Linux; run it there or in a virtual machine")
		},
	}
}
